import copy

original = {"tags": ["a"], "meta": {"n": 1}}
shallow, deep = copy.copy(original), copy.deepcopy(original)
original["tags"].append("b")
original["meta"]["n"] = 2
(shallow["tags"], deep["tags"], shallow["meta"]["n"], deep["meta"]["n"])

#: value
#| [["a", "b"], ["a"], 2, 1]
