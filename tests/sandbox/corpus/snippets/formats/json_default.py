import json
from datetime import date
from decimal import Decimal

def default(value):
    if isinstance(value, (date, Decimal)):
        return str(value)
    raise TypeError(type(value).__name__)

json.dumps({"when": date(2026, 3, 1), "cost": Decimal("9.90")}, default=default)

#: value
#| "{\"when\": \"2026-03-01\", \"cost\": \"9.90\"}"
