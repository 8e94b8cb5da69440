import json

text = '{"n": 1}\n{"n": 2}\n\n{"n": 3}\n'
records = [json.loads(line) for line in text.splitlines() if line.strip()]
sum(record["n"] for record in records)

#: value
#| 6
