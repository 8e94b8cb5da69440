from typing import NamedTuple

class Employee(NamedTuple):
    name: str
    salary: int = 1000

    def raised(self, percent):
        return self._replace(salary=self.salary * (100 + percent) // 100)

ada = Employee("Ada", 2000).raised(10)
print(ada)
(ada.salary, Employee("Bo").salary)

#: prints
#| Employee(name='Ada', salary=2200)
#: value
#| [2200, 1000]
