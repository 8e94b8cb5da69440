from dataclasses import dataclass, field

@dataclass
class Order:
    quantity: int
    price: float
    total: float = field(init=False)

    def __post_init__(self):
        if self.quantity < 1:
            raise ValueError("quantity must be at least 1")
        self.total = round(self.quantity * self.price, 2)

print(Order(3, 9.99).total)
try:
    Order(0, 1.0)
except ValueError as error:
    print(error)

#: prints
#| 29.97
#| quantity must be at least 1
