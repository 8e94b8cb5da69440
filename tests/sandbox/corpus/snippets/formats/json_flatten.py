import json

text = '{"user": {"name": "Ada", "langs": ["en", "fr"]}, "active": true, "score": null}'

def flatten(value, prefix=""):
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return {prefix: value}
    flat = {}
    for key, inner in items:
        flat.update(flatten(inner, f"{prefix}.{key}" if prefix else str(key)))
    return flat

flatten(json.loads(text))

#: value
#| {"user.name": "Ada", "user.langs.0": "en", "user.langs.1": "fr", "active": true, "score": null}
