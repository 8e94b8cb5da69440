import inspect

def order(item: str, quantity: int = 1, *, gift: bool = False) -> float:
    """Order something."""
    return 0.0

signature = inspect.signature(order)
print(signature)
[(p.name, p.kind.name) for p in signature.parameters.values()]

#: prints
#| (item: str, quantity: int = 1, *, gift: bool = False) -> float
#: value
#| [["item", "POSITIONAL_OR_KEYWORD"], ["quantity", "POSITIONAL_OR_KEYWORD"], ["gift", "KEYWORD_ONLY"]]
