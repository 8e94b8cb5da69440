import re

text = "Write to Ada <ada@example.org>, BO@Example.com; not to @nobody or x@y."
found = re.findall(r"[\w.+-]+@[\w-]+\.\w+", text)
sorted({address.lower() for address in found})

#: value
#| ["ada@example.org", "bo@example.com"]
