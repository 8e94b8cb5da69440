parent = {}

def find(x):
    parent.setdefault(x, x)
    while parent[x] != x:
        parent[x] = parent[parent[x]]
        x = parent[x]
    return x

for a, b in [("a", "b"), ("c", "d"), ("b", "c"), ("x", "y")]:
    parent[find(a)] = find(b)
groups = {}
for name in sorted(parent):
    groups.setdefault(find(name), []).append(name)
sorted(groups.values())

#: value
#| [["a", "b", "c", "d"], ["x", "y"]]
