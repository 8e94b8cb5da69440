import functools

def counted(function):
    @functools.wraps(function)
    def wrapper(*args):
        wrapper.calls += 1
        return function(*args)
    wrapper.calls = 0
    return wrapper

@counted
def square(n):
    return n * n

total = sum(square(n) for n in range(5))
(total, square.calls, square.__name__)

#: value
#| [30, 5, "square"]
