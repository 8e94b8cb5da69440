class Trie:
    def __init__(self):
        self.children = {}
        self.is_word = False

    def add(self, word):
        node = self
        for letter in word:
            node = node.children.setdefault(letter, Trie())
        node.is_word = True

    def words(self, prefix=""):
        if self.is_word:
            yield prefix
        for letter in sorted(self.children):
            yield from self.children[letter].words(prefix + letter)

trie = Trie()
for word in ("car", "card", "cat", "dog"):
    trie.add(word)
list(trie.words())

#: value
#| ["car", "card", "cat", "dog"]
