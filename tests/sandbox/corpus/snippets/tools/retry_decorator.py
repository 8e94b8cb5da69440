import functools
import shop

def retry(times):
    def decorate(function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            for attempt in range(1, times + 1):
                try:
                    return function(*args, **kwargs)
                except RuntimeError as error:
                    last = error
                    print(f"{function.__name__}: attempt {attempt} failed")
            raise last
        return wrapped
    return decorate

@retry(times=2)
def send(order_id):
    """Ship one order."""
    return shop.ship(order_id=order_id)["parcel"]

try:
    send(101)
except RuntimeError as error:
    print("gave up:", error)
(send(112), send.__doc__)

#: prints
#| send: attempt 1 failed
#| send: attempt 2 failed
#| gave up: shop.ship failed: Order 101 is shipped.
#: value
#| ["P784", "Ship one order."]
