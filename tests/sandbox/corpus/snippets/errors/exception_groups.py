errors = []
for text in ("1", "x", "", "4"):
    try:
        int(text)
    except ValueError as error:
        errors.append(error)

try:
    raise ExceptionGroup("bad rows", [*errors, KeyError("k")])
except* ValueError as group:
    print("values:", len(group.exceptions))
except* KeyError as group:
    print("keys:", [e.args[0] for e in group.exceptions])

#: prints
#| values: 2
#| keys: ['k']
