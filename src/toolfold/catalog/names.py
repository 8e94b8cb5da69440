"""The one rule that turns the names of servers, tools and parameters into Python identifiers.

The rule, in order:

1. Accents are folded (`café` is `cafe`); a character that is still not an ASCII letter or digit
   separates words. So do changes of case: `getUserIDs` is `get user ids`, `HTTPServer2` is
   `http server2`.
2. Words are lowered and joined by one underscore, and cut at 80 characters.
3. A leading digit gets `n_` in front (`2fa` is `n_2fa`). A name that has no ASCII letter or digit
   is called after what it is, with a digest: `tool_b5f2`.
4. A Python keyword gets a trailing underscore (`from_`). Builtins stay: `redis.type(...)` and
   `f(id=...)` shadow nothing. A server keeps its name even where Python or toolfold has a module of
   that name: ours are reached as `toolfold.memory`, and programs are read so that tools and the
   standard module of one name both work. Only keywords and `toolfold` get `_mcp` (`import_mcp`).
5. A parameter that is an identifier as it stands keeps its spelling (`perPage`): it is read in the
   server's documentation beside its values.
6. When several names meet in one identifier, the one that is spelled exactly so keeps it, else the
   first in alphabetical order. Each of the others gets a digest of its own spelling
   (`get_user_3fa2`), so what it is called does not depend on what else is in the list.
"""

import builtins
import keyword
import re
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable

OUR_MODULES = frozenset({"graph", "memory", "runs", "skills", "toolfold", "tools", "workspace"})

PYTHON_NAMES = frozenset(sys.stdlib_module_names) | frozenset(dir(builtins))
"""What Python means by a plain name, unless a program says otherwise."""

_SANDBOX_OWN = PYTHON_NAMES | {"runs", "tools"}
_SANDBOX_NAME = re.compile(
    r"(?<!\w)_(?:mcp_(\w+)|python_(\w+)|toolfold_(graph|memory|skills|workspace)\b)"
)
_MAX_CHARS = 80

_WORD = re.compile(
    r"[A-Z]{2,}s(?![a-z])"  # plural of an acronym: IDs
    r"|[A-Z]+(?![a-z])[0-9]*"  # acronym, up to the capital that starts the next word
    r"|[A-Z]?[a-z][a-z0-9]*"
    r"|[0-9][a-z0-9]*"
)


def words(text: str) -> list[str]:
    """Split `text` at separators and changes of case; each word is lower-case ASCII."""
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(char for char in decomposed if not unicodedata.combining(char))
    return [word.lower() for word in _WORD.findall(text)]


def module_names(servers: Iterable[str]) -> dict[str, str]:
    """Return the module of each server; all are distinct, whatever the order of `servers`."""
    return _distinct(servers, _module)


def function_names(tools: Iterable[str]) -> dict[str, str]:
    """Return the function of each tool of one server; all are distinct, whatever the order."""
    return _distinct(tools, _function)


def parameter_names(properties: Iterable[str]) -> dict[str, str]:
    """Return the identifier of each property of one schema; all are distinct."""
    return _distinct(properties, _parameter)


def _module(server: str) -> str:
    name = _snake(server, fallback="server")
    return f"{name}_mcp" if keyword.iskeyword(name) or name == "toolfold" else name


def former_name(module: str) -> str | None:
    """Return what the module of a server was called before servers kept their names."""
    return f"{module}_mcp" if module in PYTHON_NAMES | OUR_MODULES else None


def sandbox_name(module: str) -> str:
    """Return the name under which the sandbox has a module; no server can be called so."""
    if module.startswith("toolfold."):
        return f"_{module.replace('.', '_')}"
    return f"_mcp_{module}" if module in _SANDBOX_OWN else module


def python_name(module: str) -> str:
    """Return the name under which a program has a standard module beside a server of its name."""
    return f"_python_{module}"


def as_written(text: str) -> str:
    """Return a text of ours or the interpreter's with modules named as people write them."""
    return _SANDBOX_NAME.sub(_visible, text) if "_" in text else text


def _visible(match: re.Match[str]) -> str:
    server, standard, built_in = match.groups()
    return server or standard or f"toolfold.{built_in}"


def _function(tool: str) -> str:
    return _unkeyworded(_snake(tool, fallback="tool"))


def _parameter(name: str) -> str:
    if name.isascii() and name.isidentifier() and name[0] != "_" and len(name) <= _MAX_CHARS:
        return _unkeyworded(name)
    return _unkeyworded(_snake(name, fallback="arg"))


def _unkeyworded(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def _snake(text: str, *, fallback: str) -> str:
    name = "_".join(words(text))[:_MAX_CHARS].rstrip("_")
    if not name:
        return f"{fallback}_{_digest(text)[:4]}"
    return f"n_{name}" if name[0].isdigit() else name


def _distinct(originals: Iterable[str], identifier: Callable[[str], str]) -> dict[str, str]:
    rivals: dict[str, list[str]] = defaultdict(list)
    for original in sorted(set(originals)):
        rivals[identifier(original)].append(original)
    winners = {name: name if name in group else group[0] for name, group in rivals.items()}
    named = {winner: name for name, winner in winners.items()}
    taken = set(winners)
    for name, group in rivals.items():
        for original in group:
            if original != winners[name]:
                named[original] = _free(name, _digest(original), taken)
                taken.add(named[original])
    return named


def _free(name: str, digest: str, taken: set[str]) -> str:
    candidates = (f"{name}_{digest[:length]}" for length in range(4, len(digest) + 1))
    return next(candidate for candidate in candidates if candidate not in taken)


def _digest(text: str) -> str:
    from hashlib import sha256  # most names need no digest

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
