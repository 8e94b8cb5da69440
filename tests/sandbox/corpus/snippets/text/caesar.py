import string

def shift(text, n):
    lower, upper = string.ascii_lowercase, string.ascii_uppercase
    table = str.maketrans(lower + upper, lower[n:] + lower[:n] + upper[n:] + upper[:n])
    return text.translate(table)

secret = shift("Hello, World", 3)
(secret, shift(secret, -3 % 26))

#: value
#| ["Khoor, Zruog", "Hello, World"]
