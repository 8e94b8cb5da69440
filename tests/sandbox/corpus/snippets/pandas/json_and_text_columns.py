import json
import pandas as pd

frame = pd.DataFrame({"email": ["Ada@Example.org", "bo@example.com"], "n": [1, 2]})
frame["domain"] = frame["email"].str.lower().str.split("@").str[1]
json.loads(frame.to_json(orient="records"))

#: value
#| [{"email": "Ada@Example.org", "n": 1, "domain": "example.org"}, {"email": "bo@example.com", "n": 2, "domain": "example.com"}]
