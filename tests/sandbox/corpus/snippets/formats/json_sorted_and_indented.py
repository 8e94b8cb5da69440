import json

document = {"b": [1, 2.5, None], "a": {"é": "ü", "ok": True}}
print(json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False))
json.dumps(document, separators=(",", ":"))

#: prints
#| {
#|   "a": {
#|     "ok": true,
#|     "é": "ü"
#|   },
#|   "b": [
#|     1,
#|     2.5,
#|     null
#|   ]
#| }
#: value
#| "{\"b\":[1,2.5,null],\"a\":{\"\\u00e9\":\"\\u00fc\",\"ok\":true}}"
