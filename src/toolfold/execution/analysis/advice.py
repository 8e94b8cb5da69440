"""What to tell a model that used a name which is not there."""

import builtins
import difflib
import sys
from collections.abc import Iterable

from toolfold.catalog.stubs import signature
from toolfold.errors import NotFound
from toolfold.execution.analysis.gaps import MISSING_BUILTINS, MISSING_NAMES
from toolfold.execution.analysis.program import ToolNames

AVAILABLE = (
    *("asyncio", "base64", "binascii", "bisect", "collections", "copy", "csv", "dataclasses"),
    *("datetime", "decimal", "functools", "hashlib", "itertools", "json", "math", "os", "pathlib"),
    *("random", "re", "sys", "time", "tomllib", "typing", "unicodedata"),
)
_HOMES = {
    "collections": "Counter defaultdict deque namedtuple",
    "dataclasses": "dataclass field",
    "datetime": "date timedelta timezone",
    "decimal": "Decimal",
    "functools": "lru_cache partial reduce",
    "itertools": "accumulate chain combinations groupby islice permutations product",
    "math": "ceil floor sqrt",
    "pathlib": "Path",
    "time": "sleep",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}


def about_name(name: str, names: ToolNames, defined: Iterable[str]) -> str:
    """Say what to do about a name that is not defined."""
    if name.startswith("mcp__"):
        return _about_spelling(name, names)
    if name in dir(builtins):
        instead = f": {MISSING_BUILTINS[name]}" if name in MISSING_BUILTINS else ""
        return f"{name!r} does not exist in this sandbox{instead}."
    if name == "datetime":
        return f"{name!r} is not imported. Add `from datetime import datetime`."
    if name in sys.stdlib_module_names:
        known = name in AVAILABLE
        return f"{name!r} is not imported. Add `import {name}`." if known else _no_module(name)
    if name in _HOME:
        return f"{name!r} is not imported. Add `from {_HOME[name]} import {name}`."
    owners = [module for module in sorted(names.modules) if name in names.functions(module)]
    if owners:
        return f"{name!r} is not defined. Did you mean `{owners[0]}.{name}` (import {owners[0]})?"
    near = difflib.get_close_matches(name, [*defined, *names.modules, *dir(builtins)], n=1)
    return f"{name!r} is not defined." + (f" Did you mean {near[0]!r}?" if near else "")


def about_import(module: str, member: str | None, names: ToolNames) -> str:
    """Say what to do about a module that is not there, or lacks `member`."""
    if module in names.spellings and member:
        return about_tool(names.spellings[module], member, names)
    if member:
        return f"{module}.{member} does not exist in this sandbox."
    if module.partition(".")[0] in sys.stdlib_module_names:
        return _no_module(module)
    near = difflib.get_close_matches(module, [*names.modules, "tools"], n=1)
    if near:
        return f"There is no module {module!r}. Did you mean {near[0]!r}?"
    return (
        f"There is no module {module!r}. Packages cannot be installed here; the servers are: "
        f"{', '.join(sorted(names.modules)) or 'none'}."
    )


def about_attribute(module: str, name: str, names: ToolNames) -> str | None:
    """Say what to do about `module.name`, which is not there; None if that is said elsewhere."""
    if module in names.spellings:
        return about_tool(names.spellings[module], name, names)
    if module == "tools":
        return (
            f"tools has no function {name!r}; it has search, describe, servers, resources and read."
        )
    if f"{module}.{name}" in MISSING_NAMES:
        return None
    return f"{module}.{name} does not exist in this sandbox.{_elsewhere(name, names)}"


def about_tool(module: str, function: str, names: ToolNames) -> str:
    """Say which tool may have been meant by one that is not there."""
    functions = names.functions(module)
    if not functions and (fault := names.fault(module)):
        return f"The server {names.modules[module]!r} cannot be used: {fault}"
    near = difflib.get_close_matches(function, functions, n=3, cutoff=0.5)
    if near:
        best = signature(functions[near[0]])
        others = f" (or {', '.join(near[1:])})" if near[1:] else ""
        return f"{module} has no tool {function!r}. Did you mean {best}{others}?"
    hint = _elsewhere(function, names) or " `tools.search(...)` finds tools."
    return f"{module} has no tool {function!r}.{hint}"


def about_module_call(module: str, names: ToolNames) -> str:
    """Say that a module is no function."""
    some = [signature(tool) for tool in list(names.functions(module).values())[:3]]
    return f"{module} is a module. Call one of its tools: {', '.join(some)}."


def _elsewhere(function: str, names: ToolNames) -> str:
    for module in sorted(names.modules):
        if tool := names.functions(module).get(function):
            return f" Did you mean {signature(tool)}?"
    return ""


def _about_spelling(name: str, names: ToolNames) -> str:
    try:
        tool = names.find(name)
    except NotFound as error:
        return str(error)
    return f"{name!r} is not defined. Did you mean {tool.path}?"


def _no_module(module: str) -> str:
    return (
        f"The module {module!r} is not available in this sandbox. "
        f"Write what you need from it yourself; available are: {', '.join(AVAILABLE)}."
    )
