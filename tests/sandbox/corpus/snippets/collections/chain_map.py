from collections import ChainMap

defaults = {"color": "red", "size": "m"}
user = {"size": "xl"}
settings = ChainMap({}, user, defaults)
settings["extra"] = 1
(settings["size"], settings["color"], dict(sorted(settings.items())), user)

#: value
#| ["xl", "red", {"color": "red", "extra": 1, "size": "xl"}, {"size": "xl"}]
