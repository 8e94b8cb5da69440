scope = {"x": 3}
exec("def square(n):\n    return n * n\ny = square(x)", scope)
(scope["y"], eval("x + y", scope), eval("[i for i in range(3)]"))

#: value
#| [9, 12, [0, 1, 2]]
