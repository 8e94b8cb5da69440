import pickle

value = {"when": (2026, 3, 1), "tags": {"a"}, "nested": [None, 1.5]}
copy = pickle.loads(pickle.dumps(value))
(copy == value, copy is value)

#: value
#| [true, false]
