def load(text):
    try:
        return int(text)
    except ValueError as error:
        raise RuntimeError(f"cannot load {text!r}") from error

try:
    load("abc")
except RuntimeError as error:
    print(error)
    print(type(error.__cause__).__name__, "->", error.__cause__)

#: prints
#| cannot load 'abc'
#| ValueError -> invalid literal for int() with base 10: 'abc'
