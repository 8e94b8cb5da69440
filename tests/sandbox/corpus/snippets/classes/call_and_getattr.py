class Api:
    def __init__(self, path=""):
        self.path = path

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Api(f"{self.path}/{name}")

    def __call__(self, **query):
        text = "&".join(f"{k}={v}" for k, v in sorted(query.items()))
        return f"{self.path}?{text}" if text else self.path

api = Api()
[api.users.list(limit=5), api.orders.open.count()]

#: value
#| ["/users/list?limit=5", "/orders/open/count"]
