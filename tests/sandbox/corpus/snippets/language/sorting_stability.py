rows = [{"n": 2, "s": "b"}, {"n": 1, "s": "z"}, {"n": 2, "s": "a"}, {"n": 1, "s": "c"}]
rows.sort(key=lambda r: r["n"])
print([r["s"] for r in rows])
sorted(rows, key=lambda r: (-r["n"], r["s"]))[0]

#: prints
#| ['z', 'c', 'b', 'a']
#: value
#| {"n": 2, "s": "a"}
