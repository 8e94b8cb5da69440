from functools import singledispatch

@singledispatch
def show(value):
    return f"? {value!r}"

@show.register
def _(value: int):
    return f"int {value}"

@show.register(list)
def _(value):
    return "[" + ", ".join(show(v) for v in value) + "]"

show([1, "a", [2]])

#: value
#| "[int 1, ? 'a', [int 2]]"
