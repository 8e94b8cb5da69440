import json

for text in ('{"a": 1}', '{"a": }', '[1, 2', 'null'):
    try:
        print(json.loads(text))
    except json.JSONDecodeError as error:
        print(f"line {error.lineno} column {error.colno}")

#: prints
#| {'a': 1}
#| line 1 column 7
#| line 1 column 6
#| None
