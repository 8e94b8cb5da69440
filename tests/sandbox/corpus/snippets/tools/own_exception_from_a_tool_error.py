import shop

class ShippingError(Exception):
    def __init__(self, order_id, reason):
        super().__init__(f"order {order_id}: {reason}")
        self.order_id = order_id

def ship(order_id):
    try:
        return shop.ship(order_id=order_id)
    except RuntimeError as error:
        raise ShippingError(order_id, str(error)) from error

try:
    ship(110)
except ShippingError as error:
    print(error, "|", error.order_id, "|", type(error.__cause__).__name__)

#: prints
#| order 110: shop.ship failed: Order 110 is shipped. | 110 | RuntimeError
