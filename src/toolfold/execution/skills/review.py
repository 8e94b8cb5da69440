"""What the checker says of calls of skills."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from toolfold.execution.analysis.review import ARGUMENT_RULES, Finding
from toolfold.execution.analysis.type_names import surely_differ
from toolfold.execution.skills.linker import LinkedProgram
from toolfold.sandbox.sandbox import Diagnostic
from toolfold.skills.models import Skill

_QUOTED: Final = re.compile(r"`([^`]*)`")


def review_calls(linked: LinkedProgram, diagnostics: Iterable[Diagnostic]) -> list[Finding]:
    """Return what is surely wrong with how a program calls its skills."""
    if not linked.skills:
        return []
    by_symbol = {skill.symbol: skill for skill in linked.skills}
    found: dict[Finding, None] = {}
    diagnostics = [each for each in diagnostics if each.rule in ARGUMENT_RULES and each.line > 0]
    misspelt = {each.line for each in diagnostics if each.rule == "unknown-argument"}
    for diagnostic in diagnostics:
        quoted = _QUOTED.findall(diagnostic.message)
        skill = next((by_symbol[each] for each in quoted if each in by_symbol), None)
        if skill is None or (diagnostic.rule == "missing-argument" and diagnostic.line in misspelt):
            continue
        if message := _message(diagnostic, skill, quoted):
            found[Finding(line=diagnostic.line, message=message)] = None
    return list(found)


def _message(diagnostic: Diagnostic, skill: Skill, quoted: list[str]) -> str | None:
    path, how = f"skills.{skill.name}", f"Signature: {skill.signature}"
    match diagnostic.rule:
        case "unknown-argument":
            near = get_close_matches(quoted[0], skill.function.names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            return f"{path} has no parameter {quoted[0]!r}.{hint} {how}"
        case "missing-argument":
            return f"{path} needs {', '.join(quoted[:-1])}. {how}"
        case "invalid-argument-type":
            expected, found = quoted[-2:]
            if found.startswith("Literal[") and surely_differ(expected, found):
                return f"{path} takes {expected}, not {found}. {how}"
            return None
        case _:
            return f"{diagnostic.message.replace(skill.symbol, path)}. {how}"
