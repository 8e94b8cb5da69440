values = list(range(6))
del values[0], values[-1]
config = {"a": 1, "b": 2}
del config["a"]
temporary = 1
del temporary
try:
    temporary
except NameError as error:
    print("gone")
(values, config)

#: prints
#| gone
#: value
#| [[1, 2, 3, 4], {"b": 2}]
