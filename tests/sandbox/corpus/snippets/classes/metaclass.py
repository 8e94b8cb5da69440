class Singleton(type):
    _made = {}

    def __call__(cls, *args, **kwargs):
        if cls not in cls._made:
            cls._made[cls] = super().__call__(*args, **kwargs)
        return cls._made[cls]

class Settings(metaclass=Singleton):
    def __init__(self):
        self.values = {}

Settings().values["debug"] = True
(Settings() is Settings(), Settings().values)

#: value
#| [true, {"debug": true}]
