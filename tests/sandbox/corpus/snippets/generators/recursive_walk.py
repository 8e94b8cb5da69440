def walk(tree, path=()):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from walk(value, (*path, key))
        else:
            yield ".".join((*path, key)), value

config = {"db": {"host": "h", "pool": {"size": 5}}, "debug": False}
dict(walk(config))

#: value
#| {"db.host": "h", "db.pool.size": 5, "debug": false}
