import warnings

def old(x):
    warnings.warn("use new()", DeprecationWarning, stacklevel=2)
    return x

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    old(1)
[f"{w.category.__name__}: {w.message}" for w in caught]

#: value
#| ["DeprecationWarning: use new()"]
