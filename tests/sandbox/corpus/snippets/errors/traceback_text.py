import traceback

def inner():
    return {}["key"]

try:
    inner()
except KeyError:
    text = traceback.format_exc()
lines = text.strip().splitlines()
(lines[0], lines[-1], "inner" in text)

#: value
#| ["Traceback (most recent call last):", "KeyError: 'key'", true]
