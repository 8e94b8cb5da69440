import shop
from contextlib import contextmanager

log = []

@contextmanager
def step(name):
    log.append(f"begin {name}")
    try:
        yield log
    except RuntimeError as error:
        log.append(f"{name} failed: {error}")
    finally:
        log.append(f"end {name}")

with step("ship 105"):
    shop.ship(order_id=105)
with step("ship 106"):
    shop.ship(order_id=106)
log

#: value
#| ["begin ship 105", "end ship 105", "begin ship 106", "ship 106 failed: shop.ship failed: Order 106 is shipped.", "end ship 106"]
