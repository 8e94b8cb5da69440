import uuid

name = uuid.uuid5(uuid.NAMESPACE_DNS, "example.org")
fresh = {uuid.uuid4() for _ in range(100)}
(str(name), len(fresh), all(u.version == 4 for u in fresh))

#: value
#| ["aad03681-8b63-5304-89e0-8ca8f49461b5", 100, true]
