class Handler:
    registry = {}

    def __init_subclass__(cls, *, kind, **kwargs):
        super().__init_subclass__(**kwargs)
        Handler.registry[kind] = cls

    def handle(self, value):
        return value

class Upper(Handler, kind="upper"):
    def handle(self, value):
        return value.upper()

class Reverse(Handler, kind="reverse"):
    def handle(self, value):
        return value[::-1]

{kind: Handler.registry[kind]().handle("abc") for kind in sorted(Handler.registry)}

#: value
#| {"reverse": "cba", "upper": "ABC"}
