from contextlib import ExitStack, contextmanager

order = []

@contextmanager
def resource(name):
    order.append(f"+{name}")
    yield name
    order.append(f"-{name}")

with ExitStack() as stack:
    names = [stack.enter_context(resource(n)) for n in "abc"]
    stack.callback(order.append, "callback")
    order.append("".join(names))
order

#: value
#| ["+a", "+b", "+c", "abc", "callback", "-c", "-b", "-a"]
