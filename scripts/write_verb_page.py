"""Write docs/verbs.md from the table of verbs: each signature, and what it says of itself."""

import inspect
from itertools import groupby
from pathlib import Path

from write_verbs import Signature

from toolfold.memory.verbs import VERBS, Verb

PAGE = Path(__file__).parents[1] / "docs" / "verbs.md"
_HEAD = """\
# Verbs of memory

Made from the table of verbs by `scripts/write_verb_page.py`. In code a verb is a function of the module that its name
begins with; [memory](memory.md) explains them in context. Those of `memory` are also functions of `toolfold.api` and
commands below [`toolfold memory`](commands.md).
"""
_CATEGORIES = {
    "memory": "Notes",
    "events": "Events",
    "documents": "Documents",
    "graph": "Knowledge graph",
    "consolidation": "Consolidation and audit",
    "transfer": "Import and export",
}
_EFFECTS = {
    "reads": "Changes nothing.",
    "adds": "Adds; calling it twice does what calling it once does.",
    "changes": "Changes what is there.",
    "removes": "Hides; it can be taken back.",
    "destroys": "Erases for good.",
}


def page() -> str:
    """Return docs/verbs.md."""
    parts = [_HEAD]
    in_order = sorted(VERBS.values(), key=lambda verb: list(_CATEGORIES).index(verb.category))
    for category, verbs in groupby(in_order, key=lambda verb: verb.category):
        parts += [f"## {_CATEGORIES[category]}\n", *map(_entry, verbs)]
    return "\n".join(parts)


def _entry(verb: Verb) -> str:
    signature = Signature(verb)
    shown, is_keyword = [], False
    for each in signature.parameters:
        if each.is_keyword and not is_keyword:
            shown.append("*")
        is_keyword = each.is_keyword
        default = f" = {each.default}" if each.default is not None else ""
        shown.append(f"{each.name}: {each.annotation}{default}")
    one_line = f"{verb.path}({', '.join(shown)}) -> {signature.returns}"
    broken = ",\n    ".join(shown).replace("*,\n    ", "*, ")
    several = f"{verb.path}(\n    {broken}\n) -> {signature.returns}"
    text = one_line if len(one_line) <= 100 else several
    said = inspect.cleandoc(verb.method.__doc__ or "").split("\nRaises:")[0].strip()
    notes = [_EFFECTS[verb.effect]]
    if verb.is_for_users:
        notes.append("Not for code that a model wrote.")
    if verb.route:
        notes.append(f"REST: `{verb.route.method} {verb.route.path}`.")
    return f"### {verb.path}\n\n```text\n{text}\n```\n\n{said}\n\n{' '.join(notes)}\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
