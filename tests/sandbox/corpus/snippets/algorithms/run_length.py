from itertools import groupby

def encode(text):
    return "".join(f"{len(list(group))}{letter}" for letter, group in groupby(text))

def decode(text):
    result, count = "", ""
    for letter in text:
        if letter.isdigit():
            count += letter
        else:
            result += letter * int(count)
            count = ""
    return result

packed = encode("aaabccdddd")
(packed, decode(packed))

#: value
#| ["3a1b2c4d", "aaabccdddd"]
