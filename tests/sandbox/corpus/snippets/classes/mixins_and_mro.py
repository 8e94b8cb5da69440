class Named:
    def label(self):
        return self.__class__.__name__

class Loud:
    def label(self):
        return super().label().upper()

class Starred:
    def label(self):
        return f"*{super().label()}*"

class Item(Starred, Loud, Named):
    pass

print(Item().label(), [c.__name__ for c in Item.__mro__])

#: prints
#| *ITEM* ['Item', 'Starred', 'Loud', 'Named', 'object']
