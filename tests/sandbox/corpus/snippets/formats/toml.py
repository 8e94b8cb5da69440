import tomllib

text = """
title = "shop"
[owner]
name = "Ada"
born = 1815-12-10
[[items]]
name = "lamp"
[[items]]
name = "desk"
"""
document = tomllib.loads(text)
print(document["owner"]["born"].year)
[item["name"] for item in document["items"]]

#: prints
#| 1815
#: value
#| ["lamp", "desk"]
