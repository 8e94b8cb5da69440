import json

class Encoder(json.JSONEncoder):
    def default(self, value):
        if isinstance(value, set):
            return sorted(value)
        return super().default(value)

print(json.dumps({"tags": {"b", "a"}}, cls=Encoder))
try:
    json.dumps({"x": object()}, cls=Encoder)
except TypeError as error:
    print(str(error))

#: prints
#| {"tags": ["a", "b"]}
#| Object of type object is not JSON serializable
