from functools import cmp_to_key

def compare(a, b):
    return (a + b < b + a) - (a + b > b + a)

"".join(sorted(["3", "30", "34", "5", "9"], key=cmp_to_key(compare)))

#: value
#| "9534330"
