from dataclasses import dataclass, field

@dataclass(order=True)
class Task:
    priority: int
    name: str = field(compare=False)

tasks = sorted([Task(3, "write"), Task(1, "read"), Task(2, "plan")])
[task.name for task in tasks]

#: value
#| ["read", "plan", "write"]
