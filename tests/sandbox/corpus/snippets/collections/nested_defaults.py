from collections import defaultdict

def tree():
    return defaultdict(tree)

root = tree()
for path in ("a/b/c", "a/d", "e"):
    node = root
    for part in path.split("/"):
        node = node[part]

def plain(node):
    return {key: plain(value) for key, value in node.items()}

plain(root)

#: value
#| {"a": {"b": {"c": {}}, "d": {}}, "e": {}}
