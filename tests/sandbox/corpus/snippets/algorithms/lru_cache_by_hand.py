class Node:
    def __init__(self, key, value):
        self.key, self.value = key, value
        self.before = self.after = None

class Cache:
    def __init__(self, size):
        self.size, self.nodes = size, {}
        self.head, self.tail = Node(None, None), Node(None, None)
        self.head.after, self.tail.before = self.tail, self.head

    def _unlink(self, node):
        node.before.after, node.after.before = node.after, node.before

    def _push(self, node):
        node.before, node.after = self.tail.before, self.tail
        self.tail.before.after = node
        self.tail.before = node

    def get(self, key):
        node = self.nodes.get(key)
        if node is None:
            return None
        self._unlink(node)
        self._push(node)
        return node.value

    def put(self, key, value):
        if key in self.nodes:
            self._unlink(self.nodes[key])
        elif len(self.nodes) == self.size:
            oldest = self.head.after
            self._unlink(oldest)
            self.nodes.pop(oldest.key)
        node = self.nodes[key] = Node(key, value)
        self._push(node)

cache = Cache(2)
cache.put("a", 1)
cache.put("b", 2)
cache.get("a")
cache.put("c", 3)
[cache.get(k) for k in "abc"]

#: value
#| [1, null, 3]
