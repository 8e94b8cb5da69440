"""What CPython sessions keep beside their process: each variable as guests pickle it.

The host never loads these texts: a guest wrote them, and only guests read them again. Imports,
functions and classes go by their own texts, which a session knows.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from toolfold.errors import CodeRejected
from toolfold.execution.analysis.plan import make_plan
from toolfold.execution.sessions.bindings import Bindings
from toolfold.execution.sessions.handover import is_portable, no_calls
from toolfold.sandbox.sandbox import Program, Session

Texts = Mapping[str, str | None]
"""By name, its value as a guest pickled it; None where that cannot be."""

_MAX_BYTES: Final = 1 << 26
_WRITE: Final = """
def _toolfold_write(names, room):
    import base64, pickle, sys, types
    here, found = sys.modules["__main__"].__dict__, {{}}
    for name in names:
        if name not in here:
            continue
        value, text = here[name], None
        is_text = isinstance(value, (type, types.FunctionType, types.ModuleType))
        try:
            if not is_text:
                text = base64.b64encode(pickle.dumps(value, 4)).decode()
        except BaseException:
            text = None
        if text is not None and len(text) > room:
            text = None
        room -= len(text or "")
        found[name] = text
    del here["_toolfold_write"]
    return found
_toolfold_write({names!r}, {room})
"""
_READ: Final = """
def _toolfold_read(texts):
    import base64, pickle, sys
    here, left = sys.modules["__main__"].__dict__, []
    for name, text in texts.items():
        try:
            here[name] = pickle.loads(base64.b64decode(text))
        except BaseException:
            left.append(name)
    del here["_toolfold_read"]
    return left
_toolfold_read({texts!r})
"""
_IMPORT: Final = "try:\n    {statement}\nexcept Exception:\n    pass"


@dataclass(frozen=True, slots=True)
class Pickled:
    """The variables of a session whose process is gone or busy: a new one begins with these."""

    texts: Texts
    is_alive: bool = field(default=False, init=False)

    def close(self) -> None:
        """Do nothing: no process holds them."""


async def write_texts(session: Session, names: Iterable[str], *, room: int) -> Texts:
    """Have a guest pickle variables; none at all where it cannot any more."""
    source = _WRITE.format(names=list(names), room=room)
    outcome = await session.run(Program(source=source), no_calls)
    found = outcome.value if outcome.failure is None else None
    if not isinstance(found, dict):
        return {}
    return {name: text if isinstance(text, str) else None for name, text in found.items()}


async def read_texts(session: Session, texts: Texts, bound: Bindings) -> list[str]:
    """Have a guest make variables; return the names of those that it could not make."""
    for source in _sources(bound):
        await session.run(source, no_calls)
    known = {name: text for name, text in texts.items() if text is not None}
    outcome = await session.run(Program(source=_READ.format(texts=known)), no_calls)
    left = outcome.value if isinstance(outcome.value, list) else list(known)
    return [*map(str, left), *lost_names(texts, bound)]


def lost_names(texts: Texts, bound: Bindings) -> list[str]:
    """Return the names that cannot be made anew: neither pickled nor known by their text."""
    return [
        name
        for name, text in texts.items()
        if text is None and name not in bound.imports and not _has_text(name, bound)
    ]


def changed_texts(before: Texts, after: Texts) -> dict[str, str]:
    """Return the variables whose value is another than a run began with."""
    return {
        name: text for name, text in after.items() if text is not None and text != before.get(name)
    }


def only(bound: Bindings, names: Iterable[str]) -> Bindings:
    """Return what is known of these names."""
    kept = [name for name in bound.names if name in set(names)]
    return replace(
        bound,
        names=tuple(kept),
        imports={name: text for name, text in bound.imports.items() if name in kept},
        definitions={name: text for name, text in bound.definitions.items() if name in kept},
        constants={name: text for name, text in bound.constants.items() if name in kept},
    )


def encoded(texts: Texts) -> bytes:
    """Return them as a session's file has them."""
    return json.dumps(dict(texts)).encode()


def decoded(content: bytes) -> Texts:
    """Return what `encoded` made."""
    found: dict[str, str | None] = json.loads(content) if content else {}
    return found


def lost_with_process(names: Sequence[str]) -> str:
    """Say which variables are gone, and why."""
    return (
        f"{listed(names)} lived in a CPython process, which ended with the daemon, made room for "
        "others, or is busy. Files in /workspace are still there."
    )


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them, the first of many."""
    shown = ", ".join(names[:8]) or "its variables"
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def _has_text(name: str, bound: Bindings) -> bool:
    """Whether a name is made by its text alone. A class is, whatever it is computed from."""
    text = bound.definitions.get(name, "")
    is_class = re.search(rf"^class {name}\b", text, re.MULTILINE) is not None
    return bool(text) and (is_portable(text) or (is_class and "skills" not in text))


def _sources(bound: Bindings) -> Iterable[Program]:
    lines = [_IMPORT.format(statement=each) for each in bound.imports.values()]
    texts = [text for name, text in bound.definitions.items() if _has_text(name, bound)]
    for source in [*lines, *texts]:
        try:
            plan = make_plan(source, max_bytes=_MAX_BYTES)
        except CodeRejected:
            continue
        yield Program(source=plan.source, awaited=plan.awaited)
