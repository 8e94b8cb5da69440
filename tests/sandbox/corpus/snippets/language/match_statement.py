def describe(event):
    match event:
        case {"type": "order", "items": [first, *rest]}:
            return f"order of {first} and {len(rest)} more"
        case {"type": "refund", "amount": int() | float() as amount} if amount > 100:
            return f"large refund {amount}"
        case {"type": kind}:
            return f"other: {kind}"
        case [x, y]:
            return f"point {x},{y}"
        case None:
            return "nothing"
        case _:
            return "unknown"

events = [{"type": "order", "items": ["lamp", "rug"]}, {"type": "refund", "amount": 150}, {"type": "x"}, (1, 2), None, 5]
[describe(e) for e in events]

#: value
#| ["order of lamp and 1 more", "large refund 150", "other: x", "point 1,2", "nothing", "unknown"]
