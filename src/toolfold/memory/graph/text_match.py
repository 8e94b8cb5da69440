"""Whether a text contains a query as server-memory sees it: by JavaScript's lower case.

Python's lower case is the same for every character that Python knows; Unicode 14 is enough for all
but 55 letters.
"""

from collections.abc import Callable


def contains(query: str) -> Callable[[str], bool]:
    """Return a function that tells whether a text contains a query, whatever the case of both."""
    needle = query.lower()
    if not has_halves(needle):
        return lambda text: needle in text.lower()
    units = _units(needle)
    return lambda text: units in _units(text.lower())


def has_halves(text: str) -> bool:
    """Tell whether a text holds a half of a surrogate pair, as JavaScript's may."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def whole(text: str) -> str:
    """Return a text in which halves that belong together are one character."""
    if not has_halves(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def writable(text: str) -> str:
    """Return a text of the same length that any index takes, with U+FFFD for what it would not."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    if not has_halves(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _units(text: str) -> str:
    """Return a text with each UTF-16 code unit as a character: a half is found in a whole."""
    encoded = text.encode("utf-16-le", "surrogatepass")
    return "".join(
        chr(low | high << 8) for low, high in zip(encoded[::2], encoded[1::2], strict=True)
    )
