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

from toolfold.catalog.binding import merged, parameters_of
from toolfold.catalog.stubs import signature
from toolfold.catalog.tool import Tool
from toolfold.execution.analysis.advice import (
    about_attribute,
    about_import,
    about_module_call,
    about_name,
)
from toolfold.execution.analysis.plan import ProgramPlan
from toolfold.execution.analysis.program import ProgramAnalysis, ToolNames
from toolfold.jsontypes import Json, JsonObject
from toolfold.sandbox.sandbox import Diagnostic

_Kinds = frozenset[str]

_KINDS: dict[str, _Kinds] = {
    "str": frozenset({"str"}),
    "LiteralString": frozenset({"str"}),
    "int": frozenset({"number"}),
    "float": frozenset({"number"}),
    "bool": frozenset({"number", "bool"}),
    "None": frozenset({"None"}),
    "list": frozenset({"list"}),
    "tuple": frozenset({"list"}),
    "set": frozenset({"list"}),
    "dict": frozenset({"dict"}),
    # These arrive as text: `range(0, 3)`.
    "dict_items": frozenset({"view"}),
    "dict_keys": frozenset({"view"}),
    "dict_values": frozenset({"view"}),
    "range": frozenset({"view"}),
}


def surely_differ(expected: str, found: str) -> bool:
    """Whether no value of type `found` can be of type `expected`.

    Types that are not understood, and containers that differ only inside, are not sure to.
    """
    try:
        wanted = _values(ast.parse(expected, mode="eval").body)
        given = _values(ast.parse(found, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):
        return False
    if wanted is None or given is None:
        return False
    return not any(_overlap(a, b) for a in wanted for b in given)


def _overlap(a: object, b: object) -> bool:
    """Whether two alternatives, each a literal or a set of kinds, have a value in common."""
    if isinstance(a, frozenset) and isinstance(b, frozenset):
        return bool(a & b)
    if isinstance(a, frozenset):
        return bool(a & _KINDS[type(b).__name__])
    if isinstance(b, frozenset):
        return bool(b & _KINDS[type(a).__name__])
    return a == b and type(a) is type(b)


def _values(node: ast.expr) -> list[object] | None:
    """Return the alternatives of a type: literals and sets of kinds. None if not understood."""
    match node:
        case ast.Constant(value=None):
            return [_KINDS["None"]]
        case ast.Name(id=name) if name in _KINDS:
            return [_KINDS[name]]
        case ast.Subscript(value=ast.Name(id="Literal"), slice=inner):
            items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return _literals(items)
        case ast.Subscript(value=ast.Name(id=name)) if name in _KINDS:
            return [_KINDS[name]]
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            a, b = _values(left), _values(right)
            return None if a is None or b is None else a + b
        case _:
            return None


def _literals(items: list[ast.expr]) -> list[object] | None:
    """Return the values of a `Literal`; kinds that compare oddly are left out as not understood."""
    values: list[object] = []
    for item in items:
        match item:
            case ast.Constant(value=str() | bool() | int() as value):
                values.append(value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
                values.append(-value)
            case _:
                return None
    return values


# Compare what is written out in a call, dicts in lists and all, with the tool's schema.
#
# The type checker does not look into them: it would refuse the same rows built in a variable.

_ALTERNATIVES = ("anyOf", "oneOf", "not", "if", "patternProperties", "discriminator")
_MAX_DEPTH = 16


def mismatches(value: ast.expr, schema: Json, root: JsonObject, *, path: str) -> Iterator[str]:
    """Yield what certainly does not fit, each as a sentence that begins with its path.

    Only what lies inside of a dict or list is looked at; the value itself is the checker's.
    """
    yield from _inside(value, schema, root, path, _MAX_DEPTH)


def _inside(value: ast.expr, schema: Json, root: JsonObject, path: str, room: int) -> Iterator[str]:
    whole = merged(schema, root)
    if not isinstance(whole, dict) or not room or any(word in whole for word in _ALTERNATIVES):
        return
    match value:
        case ast.Dict(keys=keys, values=values) if "object" in _kinds(whole):
            if all(isinstance(key, ast.Constant) and isinstance(key.value, str) for key in keys):
                named = {
                    str(ast.literal_eval(key)): each
                    for key, each in zip(keys, values, strict=True)
                    if key
                }
                yield from _object(named, whole, root, path, room - 1)
        case ast.List(elts=items) | ast.Tuple(elts=items) if "array" in _kinds(whole):
            for index, item in enumerate(items):
                inner = whole.get("items", True)
                yield from _part(item, inner, root, f"{path}[{index}]", room - 1)


def _object(
    named: dict[str, ast.expr], whole: JsonObject, root: JsonObject, path: str, room: int
) -> Iterator[str]:
    found = whole.get("properties")
    properties = found if isinstance(found, dict) else {}
    required = whole.get("required")
    missing = [key for key in required if key not in named] if isinstance(required, list) else []
    if missing:
        yield f"{path} needs {', '.join(repr(key) for key in missing)}."
    for key, value in named.items():
        if key in properties:
            yield from _part(value, properties[key], root, f"{path}[{key!r}]", room)
        elif whole.get("additionalProperties") is False:
            near = get_close_matches(key, properties, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" It has: {', '.join(properties)}."
            yield f"{path} has no key {key!r}.{hint}"


def _part(value: ast.expr, schema: Json, root: JsonObject, path: str, room: int) -> Iterator[str]:
    yield from _inside(value, schema, root, path, room)
    whole = merged(schema, root)
    if not isinstance(whole, dict) or any(word in whole for word in _ALTERNATIVES):
        return
    allowed, kinds, given = whole.get("enum"), _kinds(whole), _kinds_of(value)
    if given and kinds and kinds.isdisjoint(given):
        yield f"{path} takes {' or '.join(sorted(kinds))}, not {ast.unparse(value)[:60]}."
    elif (
        isinstance(value, ast.Constant) and isinstance(allowed, list) and value.value not in allowed
    ):
        choices = ", ".join(map(repr, allowed[:20]))
        yield f"{path} takes one of {choices}, not {value.value!r}."


def _kinds(whole: JsonObject) -> set[str]:
    kind = whole.get("type", "object" if "properties" in whole else None)
    kinds = kind if isinstance(kind, list) else [kind]
    return {each for each in kinds if isinstance(each, str)}


def _kinds_of(value: ast.expr) -> set[str]:
    """Return the kinds of JSON that a literal can stand for; none if it is no literal."""
    match value:
        case ast.Constant(value=None):
            return {"null"}
        case ast.Constant(value=bool()):
            return {"boolean"}
        case ast.Constant(value=int() | float()):
            return {"integer", "number"}
        case ast.Constant(value=str()) | ast.JoinedStr():
            return {"string"}
        case ast.List() | ast.Tuple() | ast.ListComp():
            return {"array"}
        case ast.Dict() | ast.DictComp():
            return {"object"}
        case _:
            return set()


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
