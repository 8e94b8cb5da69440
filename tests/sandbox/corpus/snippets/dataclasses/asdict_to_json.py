import json
from dataclasses import asdict, dataclass, field

@dataclass
class Line:
    item: str
    quantity: int

@dataclass
class Invoice:
    number: int
    lines: list[Line] = field(default_factory=list)

invoice = Invoice(7, [Line("lamp", 2), Line("rug", 1)])
print(json.dumps(asdict(invoice), indent=1))

#: prints
#| {
#|  "number": 7,
#|  "lines": [
#|   {
#|    "item": "lamp",
#|    "quantity": 2
#|   },
#|   {
#|    "item": "rug",
#|    "quantity": 1
#|   }
#|  ]
#| }
