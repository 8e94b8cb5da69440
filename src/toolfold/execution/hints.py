"""What to do about a failure, where its own words do not say it."""

import builtins
import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, Final

from toolfold.catalog.tool import Tool
from toolfold.execution.analysis.advice import AVAILABLE
from toolfold.execution.tiers import Tier
from toolfold.sandbox.sandbox import GuestFailure

_HINTS: Final[Mapping[str, str]] = {
    "can't be awaited": "this is a plain value already: leave out `await`, or await the call "
    "itself where it is made.",
    "'coroutine' object": "the call was treated as awaited: write `await` in front of it "
    "where it is made, or use its value directly.",
    "cannot suspend in this synchronous context": "call tools in a loop or a comprehension, not "
    "from map(), filter() or a key function.",
    "'function' object has no attribute": 'print(tools.describe("server.tool")) shows what a tool '
    "takes and returns.",
    "has no attribute": "values of tools are plain dicts and lists: use value['key'].",
    "list indices must be integers": "the value is a list: loop over it, or take value[0].",
    "tuple indices must be integers": "the value has fields: print it to see them, and use "
    "value.field.",
    "string indices must be integers": "the value is text, not a dict: print it to see its form.",
}


_WALLS: Final[Mapping[re.Pattern[str], str]] = {
    re.compile(r"/subprocess\.py|/multiprocessing/|os\.fork\b"): "there are no other processes "
    "here: do it in Python, in threads, or with a tool.",
    re.compile(r"/socket\.py|gaierror|urlopen error"): "there is no network here: use a tool.",
}
_REFUSED: Final = re.compile(
    r"PermissionError|FileNotFoundError|NotImplementedError|socket\.gaierror|urllib\.error"
)
_LACKED: Final = re.compile(
    r"AttributeError: (?:module |type object )?'([\w.]+)'(?: object)? has no attribute '(\w+)'"
)
_FIELD: Final = re.compile(r"AttributeError: '(\w+)' object has no attribute '(\w+)'")
_CLASS: Final = re.compile(r"class (\w+)\(NamedTuple\):\n((?: +.*\n?)+)")
_GO_ON: Final = (
    "CPython has it, but the run had called tools or written files already, so it is not repeated. "
    "Send the rest as a new run that starts with `import io`, which only CPython has."
)


def hint_for(
    failure: GuestFailure, tier: Tier, *, has_cpython: bool, tools: Iterable[Tool] = ()
) -> str | None:
    """Return what a model should do next; None if there is nothing to add."""
    if fields := _fields(failure, tools):
        return f"it has: {', '.join(fields)}."
    if failure.message.startswith("AttributeError: module 'skills'"):
        return "write `from skills import <name>`; skills.search(...) finds skills."
    if tier == "cpython":
        return _hint_for_cpython(failure)
    if lacked := _lacked(failure):
        # A run that had done nothing would have been begun again in CPython.
        what_next = _GO_ON if has_cpython else "Write it with plain functions and loops."
        return f"the quick interpreter lacks {lacked}. {what_next}"
    if failure.message.startswith("AttributeError: module"):
        return "this function is not available in this sandbox; write it yourself."
    return _common(failure)


def _fields(failure: GuestFailure, tools: Iterable[Tool]) -> list[str]:
    """Return the fields of a value of ours that was asked for another."""
    asked = _FIELD.match(failure.message)
    if asked is None:
        return []
    sources = (
        source for tool in tools if tool.listed.returned for source in tool.listed.returned.classes
    )
    for source in sources:
        declared = _CLASS.match(source)
        if declared is not None and declared[1] == asked[1]:
            return re.findall(r"^ +(\w+):", declared[2], re.MULTILINE)
    return []


def _hint_for_cpython(failure: GuestFailure) -> str | None:
    if _REFUSED.match(failure.message):
        told = failure.message + failure.traceback
        return next((hint for words, hint in _WALLS.items() if words.search(told)), None)
    if failure.message.startswith("AttributeError: module"):
        return None  # it is all of Python: the name is wrong
    return _common(failure)


def _common(failure: GuestFailure) -> str | None:
    return next((hint for words, hint in _HINTS.items() if words in failure.message), None)


def _lacked(failure: GuestFailure) -> str | None:
    """Say what Python has and the quick interpreter has not; None if that is not why it failed."""
    if failure.kind == "unsupported" or failure.message.endswith(" is not supported"):
        return "this"
    found = _LACKED.match(failure.message)
    if found is None:
        return None
    owner, name = found.groups()
    known = _known(owner)
    return f"{owner}.{name}" if known is not None and hasattr(known, name) else None


def _known(path: str) -> Any:
    """Return a builtin type, or a module that both interpreters have, or a class of it."""
    module, _, member = path.partition(".")
    if module in AVAILABLE:
        found = import_module(module)
        return getattr(found, member, None) if member else found
    return getattr(builtins, path, None)
