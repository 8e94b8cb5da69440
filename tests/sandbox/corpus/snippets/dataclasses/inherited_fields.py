from dataclasses import dataclass, fields

@dataclass
class Person:
    name: str

@dataclass
class Employee(Person):
    team: str = "none"

print(Employee("Ada", "engines"))
[f.name for f in fields(Employee)]

#: prints
#| Employee(name='Ada', team='engines')
#: value
#| ["name", "team"]
