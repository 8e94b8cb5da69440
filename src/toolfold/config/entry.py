"""One server's entry in a file: typed access to keys that may hold anything."""

import re
from itertools import pairwise
from typing import NoReturn

from toolfold.config.servers import Pairs
from toolfold.errors import ConfigError
from toolfold.jsontypes import Json, JsonObject


class ServerEntry:
    """Reads keys of one entry; every `ConfigError` names the key and what it should hold.

    A key that is absent and one that is null are the same. Where a string is due inside a list or
    an object, numbers and booleans are taken too, as JSON writes them.
    """

    def __init__(self, name: str, value: Json) -> None:
        if not name:
            raise ConfigError("a server needs a name")
        self.name = _checked("name", name)
        if not isinstance(value, dict):
            raise ConfigError(f"must be an object, not {_kind(value)}")
        self._keys: JsonObject = {key: held for key, held in value.items() if held is not None}

    def has(self, key: str) -> bool:
        """Whether the entry says anything about `key`."""
        return key in self._keys

    def string(self, key: str) -> str:
        """Return a string, or "" when absent."""
        value = self._keys.get(key, "")
        if not isinstance(value, str):
            _refuse(key, "a string", value)
        return _checked(key, value)

    def words(self, key: str) -> tuple[str, ...]:
        """Return a list of strings, or () when absent."""
        value = self._keys.get(key, [])
        if not isinstance(value, list):
            _refuse(key, "a list of strings", value)
        return tuple(_text(f"{key}[{index}]", word) for index, word in enumerate(value))

    def items(self, key: str) -> list[Json]:
        """Return a list of anything, or [] when absent."""
        value = self._keys.get(key, [])
        if not isinstance(value, list):
            _refuse(key, "a list", value)
        return value

    def pairs(self, key: str) -> Pairs:
        """Return an object of strings, without its nulls, in the order written."""
        value = self._keys.get(key, {})
        if not isinstance(value, dict):
            _refuse(key, "an object of strings", value)
        return tuple(
            (_checked(key, name), _text(f"{key}.{name}", text))
            for name, text in value.items()
            if text is not None
        )

    def part(self, key: str) -> "ServerEntry":
        """Return the object under `key`, to be read in the same way; empty when absent."""
        return ServerEntry(key, self._keys.get(key, {}))

    def flag(self, key: str, *, default: bool) -> bool:
        """Return a boolean."""
        value = self._keys.get(key, default)
        if not isinstance(value, bool):
            _refuse(key, "true or false", value)
        return value

    def positive(self, key: str) -> float:
        """Return a number above zero and below a million million."""
        value = self._keys.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            _refuse(key, "a number", value)
        if not (0 < value < 1e12):
            raise ConfigError(f"`{key}` must be above 0 and below 10^12")
        return float(value)


def _text(key: str, value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        _refuse(key, "a string", value)
    return _checked(key, value)


def _checked(key: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"`{key}` holds half a character") from None
    if "\0" in text:
        raise ConfigError(f"`{key}` holds a NUL, which no process can be given")
    return text


def _refuse(key: str, expected: str, value: Json) -> NoReturn:
    raise ConfigError(f"`{key}` must be {expected}, not {_kind(value)}")


def _kind(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"


_RUNNERS = {"uvx", "npx", "bunx", "pnpx", "uv", "pipx", "npm", "pnpm", "yarn"}
_RUNNER_VERBS = {"run", "tool", "x", "exec", "dlx"}
_FLAGS_WITH_VALUE = {
    *("--from", "--with", "--python", "-p", "--package", "--spec", "--directory", "--project"),
    *("--index", "--index-url", "--default-index", "--extra-index-url", "--env-file"),
}


def is_toolfold(command: str, args: tuple[str, ...]) -> bool:
    """Whether a command starts toolfold, by itself or by a package runner such as `uvx`."""
    program = re.split(r"[/\\]", command)[-1].lower().removesuffix(".exe")
    if program == "toolfold" or ("-m", "toolfold") in pairwise(args):
        return True
    return program in _RUNNERS and _package(args) == "toolfold"


def _package(args: tuple[str, ...]) -> str | None:
    """Return the first argument that is no flag, no flag's value and no verb, without version."""
    for before, word in pairwise(("", *args)):
        is_word = not word.startswith("-") and before not in _FLAGS_WITH_VALUE
        if is_word and word not in _RUNNER_VERBS:
            return re.split(r"[@=<>~!\[]", word)[0]
    return None


# One letter or words: `-pSECRET` is the flag `-p` and what it is given.
