class Inventory:
    def __init__(self):
        self._stock = {}

    def __setitem__(self, name, count):
        self._stock[name] = count

    def __getitem__(self, name):
        return self._stock[name]

    def __delitem__(self, name):
        del self._stock[name]

    def __contains__(self, name):
        return name in self._stock

    def __len__(self):
        return len(self._stock)

    def __iter__(self):
        return iter(sorted(self._stock))

stock = Inventory()
stock["lamp"], stock["desk"], stock["rug"] = 3, 1, 7
del stock["desk"]
(len(stock), list(stock), "desk" in stock, stock["rug"])

#: value
#| [2, ["lamp", "rug"], false, 7]
