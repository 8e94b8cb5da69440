from collections import UserDict

class Lower(UserDict):
    def __setitem__(self, key, value):
        super().__setitem__(key.lower(), value)

    def __getitem__(self, key):
        return super().__getitem__(key.lower())

headers = Lower({"Content-Type": "text/plain"})
headers["ACCEPT"] = "*/*"
(headers["accept"], sorted(headers))

#: value
#| ["*/*", ["accept", "content-type"]]
