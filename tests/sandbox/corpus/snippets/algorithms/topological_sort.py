from graphlib import CycleError, TopologicalSorter

jobs = {"deploy": {"test", "build"}, "test": {"build"}, "build": {"fetch"}}
print(list(TopologicalSorter(jobs).static_order()))
try:
    list(TopologicalSorter({"a": {"b"}, "b": {"a"}}).static_order())
except CycleError:
    print("a cycle")

#: prints
#| ['fetch', 'build', 'test', 'deploy']
#| a cycle
