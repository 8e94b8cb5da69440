"""Which findings of the type checker stop a run, and what the model is told.

A type checker rejects correct code too: sums over mixed dictionaries, `re.match(...).group()`. So
only findings about tools and undefined names count, and of those about types only the sure ones.
"""

import ast
import builtins
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from toolfold.catalog.binding import parameters_of
from toolfold.catalog.stubs import signature
from toolfold.catalog.tool import Tool
from toolfold.execution.analysis.advice import (
    about_attribute,
    about_import,
    about_module_call,
    about_name,
)
from toolfold.execution.analysis.literals import mismatches
from toolfold.execution.analysis.plan import ProgramPlan
from toolfold.execution.analysis.program import ProgramAnalysis, ToolNames
from toolfold.execution.analysis.type_names import surely_differ
from toolfold.sandbox.sandbox import Diagnostic

ARGUMENT_RULES = frozenset(
    {
        "invalid-argument-type",
        "missing-argument",
        "parameter-already-assigned",
        "too-many-positional-arguments",
        "unknown-argument",
    }
)
_QUOTED = re.compile(r"`([^`]*)`")
_VIEWS = ("dict_items", "dict_keys", "dict_values", "range")

# Guest code may await there; where it really may not, Python says so before anything runs.
_AT_THE_TOP = "outside of an asynchronous function"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One reason not to run the code, with the fix."""

    line: int
    message: str


def review(
    plan: ProgramPlan,
    diagnostics: Iterable[Diagnostic],
    names: ToolNames,
    *,
    packages: frozenset[str] | None = None,
) -> list[Finding]:
    """Return the findings that stop a run, in the order of their lines, each once.

    With `packages` the program has all of Python and these: the checker knows only what Monty has,
    so that what it says of other modules does not count.
    """
    reviewer = _Reviewer(plan, names, packages)
    diagnostics = list(diagnostics)
    misspelt = {found.line for found in diagnostics if found.rule == "unknown-argument"}
    found: dict[Finding, None] = {}
    for diagnostic in diagnostics:
        if diagnostic.rule == "missing-argument" and diagnostic.line in misspelt:
            continue  # the misspelt one is the missing one
        for message in reviewer.messages(diagnostic):
            found[Finding(line=diagnostic.line, message=message)] = None
    for finding in reviewer.findings():
        found[finding] = None
    return sorted(found, key=lambda finding: finding.line)


class _Reviewer:
    """Reviews one program."""

    def __init__(
        self, plan: ProgramPlan, names: ToolNames, packages: frozenset[str] | None
    ) -> None:
        self._plan = plan
        self._names = names
        self._has_all = packages is not None
        self._modules = sys.stdlib_module_names | (packages or frozenset())
        self._reading = ProgramAnalysis(plan, names)

    def messages(self, diagnostic: Diagnostic) -> Iterator[str]:
        """Yield what a finding of the checker means for the model."""
        quoted = _QUOTED.findall(diagnostic.message)
        match diagnostic.rule:
            case "invalid-syntax" if not (self._has_all and _AT_THE_TOP in diagnostic.message):
                yield f"SyntaxError: {diagnostic.message}"
            case "unresolved-reference":
                yield from self._undefined(diagnostic, quoted[0])
            case "unresolved-import":
                yield from self._bad_import(diagnostic, *quoted)
            case "unresolved-attribute" if diagnostic.message.startswith("Module "):
                if not self._is_there(quoted[0]) and (
                    message := about_attribute(quoted[0], quoted[1], self._names)
                ):
                    yield message
            case "call-non-callable":
                yield from self._module_called(diagnostic)
            case rule if rule in ARGUMENT_RULES:
                yield from self._bad_argument(diagnostic, quoted)

    def findings(self) -> Iterator[Finding]:
        """Yield what the checker does not look for."""
        for call, tool in self._reading.tool_calls:
            for message in self._misfits(call, tool):
                yield Finding(line=call.lineno, message=f"{tool.path}: {message}")
        if self._has_all:
            return
        for call, function, tool in self._reading.called_back():
            yield Finding(
                line=call.lineno,
                message=f"{function}() cannot call {tool.path} in this sandbox: call the tool in "
                "a loop or a list comprehension, and work on the results.",
            )

    def _undefined(self, diagnostic: Diagnostic, name: str) -> Iterator[str]:
        reading = self._reading
        if "exec" in self._plan.names or reading.is_annotation(diagnostic):
            return
        if self._has_all and name in dir(builtins):
            return
        if not reading.binds(name, diagnostic) and not reading.is_guarded(
            diagnostic.line, "NameError"
        ):
            yield about_name(name, self._names, reading.defined)

    def _bad_import(
        self, diagnostic: Diagnostic, module: str, member: str | None = None, *_: str
    ) -> Iterator[str]:
        if self._is_there(module):
            return
        expected = ("ImportError", "ModuleNotFoundError")
        if not self._reading.is_guarded(diagnostic.line, *expected):
            yield about_import(module, member, self._names)

    def _is_there(self, module: str) -> bool:
        """Whether a module of which the checker knows too little is in the real Python."""
        return (
            self._has_all
            and module not in self._names.spellings
            and module.partition(".")[0] in self._modules
        )

    def _module_called(self, diagnostic: Diagnostic) -> Iterator[str]:
        for node in self._reading.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                module = self._reading.modules.get(node.func.id, "")
                spellings = self._names.spellings
                if module in spellings and node.lineno == diagnostic.line:
                    yield about_module_call(spellings[module], self._names)

    def _bad_argument(self, diagnostic: Diagnostic, quoted: list[str]) -> Iterator[str]:
        found = self._reading.call_at(diagnostic)
        if found is None or found[1].function not in quoted:
            return
        call, tool = found
        match diagnostic.rule:
            case "unknown-argument":
                yield f"{tool.path} has no parameter {quoted[0]!r}.{_nearest(tool, quoted[0])}"
            case "missing-argument":
                missing = ", ".join(quoted[:-1])
                yield f"{tool.path} needs {missing}. Signature: {signature(tool)}"
            case "invalid-argument-type":
                yield from self._wrong_type(diagnostic, call, tool, quoted)
            case _:
                yield f"{tool.path}: {diagnostic.message}. Signature: {signature(tool)}"

    def _wrong_type(
        self, diagnostic: Diagnostic, call: ast.Call, tool: Tool, quoted: list[str]
    ) -> Iterator[str]:
        argument = self._reading.argument_at(call, diagnostic)
        if argument is None or self._reading.written_out(argument.value) is None:
            return
        expected, found = quoted[-2:]
        if surely_differ(expected, found):
            what = f"{tool.path}: {argument.name}" if argument.name else tool.path
            hint = " Write list(...) around it." if found.startswith(_VIEWS) else ""
            yield f"{what} takes {expected}, not {found}.{hint}"

    def _misfits(self, call: ast.Call, tool: Tool) -> Iterator[str]:
        root = tool.listed.input_schema
        parameters = {each.identifier: each for each in parameters_of(tool).listed}
        for keyword in call.keywords:
            parameter = parameters.get(keyword.arg or "")
            if parameter:
                value = self._reading.display(keyword.value)
                yield from mismatches(value, parameter.schema, root, path=parameter.identifier)


def _nearest(tool: Tool, name: str) -> str:
    known = [each.identifier for each in parameters_of(tool).listed]
    near = get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"{hint} Signature: {signature(tool)}"
