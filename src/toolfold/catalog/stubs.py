"""Tool schemas into Python stubs: what a model reads, and what the type checker reads.

A schema may be odd, circular or enormous. Whatever this module does not understand, or finds too
deep or too long, becomes `Any`; nothing is raised.
"""

import keyword
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from toolfold.catalog.binding import (
    Parameter,
    Parameters,
    merged,
    parameters_of,
    resolve,
    wrapped_result,
)
from toolfold.catalog.names import words
from toolfold.catalog.textrules import OPEN, unwrapped_property
from toolfold.catalog.tool import Returned, SharedSchemas, Tool
from toolfold.jsontypes import Json, JsonObject

_HEADER = """\
from typing import Any, Awaitable, Literal, NotRequired, TypedDict
from ty_extensions import Intersection
"""
_IMPORTED = frozenset(
    {
        *("Any", "Awaitable", "Intersection", "Literal", "NamedTuple", "NotRequired", "TypedDict"),
        "_builtins",
    }
)
_BUILTINS = frozenset({"bool", "dict", "float", "int", "list", "str"})
_BUILTIN = re.compile(rf"\b({'|'.join(sorted(_BUILTINS))})\b")
_KINDS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}

_MAX_DEPTH = 8
_MAX_SCHEMAS = 400
_MAX_PARAMETERS = 100
_MAX_KEYS = 60
_MAX_KEY_CHARS = 100
_MAX_LITERAL_CHARS = 600

_MAX_CALL_CHARS = 110
_MAX_BRIEF_CHARS = 183
_MAX_SENTENCE_CHARS = 100
_MAX_NAMED_CHARS = 40
_MAX_RESULT_CHARS = 48
_MAX_SHOWN_KEYS = 4
_MAX_SHOWN_DEFAULT_CHARS = 16
_EMPTY_DEFAULTS = frozenset({"None", "[]", "{}"})
_PLAIN_TYPES = frozenset({"bool", "float", "int", "str"})  # which a default shows by itself
_MAX_SUMMARY_CHARS = 300
_MAX_NOTE_CHARS = 90
_MAX_DEFAULT_CHARS = 30
_MAX_READ_CHARS = 10_000
_MAX_OBSERVED_CHARS = 400
_MAX_SHARED_CHARS = 4_000

_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)\s|\n\s*\n|\n\s*[-*#]")
_ARGUMENTS = re.compile(r"^[ \t]*(?:Args|Arguments|Parameters|Params):[ \t]*$", re.MULTILINE)
_SECTION = re.compile(r"^[ \t]*[A-Z]\w+:[ \t]*$", re.MULTILINE)
_OPTIONAL = re.compile(r"^\(optional\)\s*", re.IGNORECASE)
_ARGUMENT = re.compile(
    r"^[ \t]*[-*]?[ \t]*`?(\w+)`?(?:[ \t]*\([^)\n]*\))?:[ \t]*(\S.*)$", re.MULTILINE
)

_QUOTED_VALUE = re.compile(r"(?<!\w)['\"`]([\w.-]{1,20})['\"`]")
_ONE_OF = re.compile(r"\bone of\b|\beither\b|\bor\b|\boptions?\b|\ballowed\b", re.IGNORECASE)
_SAID_DEFAULT = re.compile(
    r"\bdefaults?(?: value)?(?: is| to|:| =)? *[`(]?"
    r"(?P<value>'[\w ./-]*'|\"[\w ./-]*\"|-?\d+(?:\.\d+)?(?![\w.]*\w)|true\b|false\b)",
    re.IGNORECASE,
)
_KEY = re.compile(r"[\w$@.-]+")
_FORMAT = re.compile(r"\bYYYY-MM-DD(?:THH:MM(?::SS)?Z?)?|\bHH:MM(?::SS)?\b")

# The members of a union in order: each as it is written, with its type if it is a literal.
_Union = dict[str, str | None]
_ANY: _Union = {"Any": None}


def signature(tool: Tool) -> str:
    """Write the call in one line, without types: `github.create_issue(owner, repo, body=…)`."""
    return parameters_of(tool).signature()


def brief(tool: Tool, *, returns: str | None = None) -> str:
    """Return a typed signature and the first sentence of the description, both shortened.

    `git.git_log(max_count=10, author?: str) -> str: Shows the log.` Parameters that are filled in
    are left out. Objects of few keys show them: `list[{name, kind?}]`.
    """
    result = returns or short_result(tool)
    is_shown = result is not None and len(result) <= _MAX_RESULT_CHARS
    call = short_call(tool, tool.path) + (f" -> {result}" if is_shown else "")
    said = sentence(tool, max_chars=min(_MAX_BRIEF_CHARS - len(call), _MAX_SENTENCE_CHARS))
    return f"{call}: {said}" if said else call


def short_result(tool: Tool) -> str | None:
    """Return what a tool is declared to return, as a plain type; None if nothing is declared."""
    if tool.listed.returned is not None:
        return tool.listed.returned.type
    schema = tool.listed.output_schema
    if schema is None:
        return None
    only = unwrapped_property(schema, OPEN)
    declared = wrapped_result(schema) or (only[1] if only else schema)
    return _short_type(declared, "Result", _Types(schema, _Classes(), is_loose=True))


def short_call(tool: Tool, name: str) -> str:
    """Write the call of a tool under a name, with types: `git_log(max_count=10, author?: str)`."""
    types = _Types(tool.listed.input_schema, _Classes(), is_loose=True)
    listed = parameters_of(tool).listed[:_MAX_PARAMETERS]
    texts: list[str] = []
    room = _MAX_CALL_CHARS - len(tool.path)
    for each in listed:
        if each.default is not None:
            continue
        text = _short_parameter(each, types)
        if len(", ".join([*texts, text])) > room:
            texts.append("…")
            break
        texts.append(text)
    return f"{name}({', '.join(texts)})"


def _short_parameter(parameter: Parameter, types: "_Types") -> str:
    """Write one parameter: `path: str`, `limit=10`, `mode: 'a'|'b' = 'a'`, `since?: str`."""
    type_ = _short_type(parameter.schema, parameter.name, types)
    named = (_named_values(_said(parameter.schema)) if type_ == "str" else None) or type_
    if parameter.required:
        return f"{parameter.identifier}: {named}"
    default = _short_default(parameter.schema, type_)
    if default is None:
        return f"{parameter.identifier}?: {named}"
    is_plain = named in _PLAIN_TYPES
    return f"{parameter.identifier}{'=' if is_plain else f': {named} = '}{default}"


def _short_default(schema: Json, type_: str) -> str | None:
    """Return the default that a schema or its description states, if it is short."""
    if not isinstance(schema, dict):
        return None
    if "default" in schema:
        written = repr(schema["default"])
        is_shown = len(written) <= _MAX_SHOWN_DEFAULT_CHARS and written.isprintable()
        return written if is_shown and written not in _EMPTY_DEFAULTS else None
    found = _SAID_DEFAULT.search(_said(schema))
    return _written_default(found["value"], type_) if found else None


def _written_default(said: str, type_: str) -> str | None:
    """Write a default that a description names as Python does, if it is of the type declared."""
    if said.lower() in {"true", "false"}:
        return said.capitalize() if type_ == "bool" else None
    if said[0] in "'\"":
        is_shown = type_ == "str" and len(said) <= _MAX_SHOWN_DEFAULT_CHARS
        return repr(said[1:-1]) if is_shown else None
    return said if type_ == "float" or (type_ == "int" and "." not in said) else None


def _said(schema: Json) -> str:
    said = schema.get("description") if isinstance(schema, dict) else None
    return said[: _MAX_NOTE_CHARS * 2] if isinstance(said, str) else ""


def _named_values(said: str) -> str | None:
    """Return the values or the format that a description names: `'asc'|'desc'`, `YYYY-MM-DD`."""
    values = list(dict.fromkeys(_QUOTED_VALUE.findall(said)))
    joined = "|".join(f"'{value}'" for value in values)
    if len(values) > 1 and _ONE_OF.search(said) and len(joined) <= _MAX_NAMED_CHARS:
        return joined
    found = _FORMAT.search(said)
    return f"'{found[0]}'" if found else None


def _short_type(schema: Json, hint: str, types: "_Types") -> str:
    text = types.text(schema, hint).removesuffix(" | None")
    text = text.replace("dict[str, Any]", "dict").replace("[Any]", "")
    if text == "dict":
        return _shown_keys(schema, types.root) or text
    if text == "list[dict]":
        whole = merged(schema, types.root)
        keys = _shown_keys(whole.get("items"), types.root) if isinstance(whole, dict) else None
        return f"list[{keys}]" if keys else text
    if text.startswith("Literal["):
        literals = text.removeprefix("Literal[").removesuffix("]").replace(", ", "|")
        return literals if len(literals) <= _MAX_NAMED_CHARS else "str"
    return text


def _shown_keys(schema: Json, root: JsonObject) -> str | None:
    """Return the keys of an object that has few: `{name, kind?}`; None for any other schema."""
    whole = merged(schema, root)
    properties = whole.get("properties") if isinstance(whole, dict) else None
    if not isinstance(whole, dict) or not isinstance(properties, dict):
        return None
    if not 0 < len(properties) <= _MAX_SHOWN_KEYS or not all(map(_KEY.fullmatch, properties)):
        return None
    required = whole.get("required")
    needed = required if isinstance(required, list) else list(properties)
    text = f"{{{', '.join(key if key in needed else f'{key}?' for key in properties)}}}"
    return text if len(text) <= _MAX_RESULT_CHARS else None


def sentence(tool: Tool, *, max_chars: int = _MAX_SENTENCE_CHARS) -> str:
    """Return the first sentence of the description, shortened."""
    return cut(_first_sentence(tool.listed.description), max_chars)


def render_stub(tool: Tool, *, observed: str | None = None, returns: str | None = None) -> str:
    """Return `tool` as a documented function after the types it needs, for a model to read.

    The text is valid Python. Descriptions are shortened. `observed` says what is known of its
    answers beyond what the server declares, and `returns` the plain type that they have.
    """
    classes = _Classes()
    types = _Types(tool.listed.input_schema, classes, shows_defaults=True)
    call = _arguments(parameters_of(tool), types)
    result = classes.written(_result(tool, classes))
    result = returns or result if result == "Any" else result
    classes.declare_shared(max_chars=_MAX_SHARED_CHARS)
    seen = f"  # {cut(observed, _MAX_OBSERVED_CHARS)}" if observed else ""
    head = f"def {tool.function}({call}) -> {result}:{seen}\n"
    return "".join([*classes.sources, head, _docs(tool)])


def module_stub(tools: Iterable[Tool]) -> str:
    """Return the `.pyi` of the module that holds `tools`, for the type checker.

    Each function may be called plainly or awaited, under its own name and, where that is an
    identifier, under the server's spelling.
    """
    listed = list(tools)
    functions = {tool.function for tool in listed}
    aliases = dict(_aliases(listed, functions))
    classes = _Classes(taken={*_IMPORTED, *functions, *aliases})
    lines = [_declaration(tool, classes) for tool in listed]
    classes.declare_shared()
    lines += [f"{alias} = {function}\n" for alias, function in aliases.items()]
    return "".join([_HEADER, *classes.imports(), *classes.sources, *lines])


def _declaration(tool: Tool, classes: "_Classes") -> str:
    classes.prefix = _camel(tool.function)
    types = _Types(tool.listed.input_schema, classes, is_loose=True)
    parameters = parameters_of(tool)
    call = _arguments(parameters, types)
    if parameters.defaults:
        call = _loose_arguments(parameters, types)
    is_open = unwrapped_property(tool.listed.output_schema, OPEN) is not None
    result = _ANY if is_open else _result(tool, classes)
    # Nothing is both a bool, None or a literal and awaitable: the checker would conclude that
    # the call never returns, and skip the code behind it.
    if any(kind or name in ("bool", "None") for name, kind in result.items()):
        result = _ANY
    text = classes.written(result)
    return f"def {tool.function}({call}) -> Intersection[{text}, Awaitable[{text}]]: ...\n"


def _aliases(tools: Iterable[Tool], functions: set[str]) -> Iterator[tuple[str, str]]:
    unusable = functions | _IMPORTED | _BUILTINS
    for tool in tools:
        original = tool.listed.name
        if _is_plain(original) and original not in unusable:
            yield original, tool.function


def _arguments(parameters: Parameters, types: "_Types") -> str:
    shown = parameters.listed[:_MAX_PARAMETERS]
    by_position = [each for each in shown if each.name in parameters.positional]
    by_name = [each for each in shown if each.name not in parameters.positional]
    texts = [_argument(each, types) for each in by_position]
    texts += ["*"] if by_name else []
    texts += [_argument(each, types) for each in by_name]
    if parameters.takes_others or len(shown) < len(parameters.listed):
        texts.append("**others: Any")
    return ", ".join(texts)


def _loose_arguments(parameters: Parameters, types: "_Types") -> str:
    """Declare what a tool with known values takes: by position all of them, or all but these."""
    shown = parameters.listed[:_MAX_PARAMETERS]
    texts = [
        f"{each.identifier}: Any = ..." for each in shown if each.name in parameters.all_positional
    ]
    by_name = [
        _argument(each, types) for each in shown if each.name not in parameters.all_positional
    ]
    others = ["**others: Any"] if parameters.takes_others else []
    return ", ".join([*texts, *(["*", *by_name] if by_name else []), *others])


def _argument(parameter: Parameter, types: "_Types") -> str:
    union = types.of(parameter.schema, parameter.name)
    if parameter.default is not None:
        return f"{parameter.identifier}: {types.classes.written(union)} = {parameter.default!r}"
    if parameter.required:
        return f"{parameter.identifier}: {types.classes.written(union)}"
    if types.shows_defaults and (default := _stub_default(parameter.schema, types)):
        return f"{parameter.identifier}: {types.classes.written(union)} = {default}"
    return f"{parameter.identifier}: {types.classes.written(union | {'None': None})} = None"


def _stub_default(schema: Json, types: "_Types") -> str | None:
    """Return the default of a parameter as the line of the tool in a listing shows it."""
    plain = _Types(types.root, _Classes(), is_loose=True)
    return _short_default(schema, _short_type(schema, "", plain))


def _result(tool: Tool, classes: "_Classes") -> _Union:
    if tool.listed.returned is not None:
        return {classes.adopt(tool.listed.returned): None}
    schema = tool.listed.output_schema
    if schema is None:
        return _ANY
    types = _Types(schema, classes)
    only = unwrapped_property(schema, OPEN)
    return types.of(wrapped_result(schema) or (only[1] if only else schema), "Result")


@dataclass(slots=True)
class _Classes:
    """The classes that one stub declares, and the names that it has given away."""

    taken: set[str] = field(default_factory=lambda: set(_IMPORTED))
    prefix: str = ""
    sources: list[str] = field(default_factory=list)
    # What schemas that tools share are called, by identity, and those that are still to be written.
    shared: dict[int, str] = field(default_factory=dict)
    waiting: "deque[tuple[str, JsonObject, JsonObject]]" = field(default_factory=deque)

    def name_shared(self, source: Json, whole: JsonObject, root: JsonObject, hint: str) -> str:
        """Return the class of a schema that tools share, which is declared once for all of them."""
        if id(source) not in self.shared:
            self.prefix, kept = "", self.prefix
            self.shared[id(source)] = self.reserve(hint)
            self.prefix = kept
            self.waiting.append((self.shared[id(source)], whole, root))
        return self.shared[id(source)]

    def declare_shared(self, *, max_chars: int | None = None) -> None:
        """Declare the classes that are still to be written, the nearest first.

        What does not fit into `max_chars` is said to be any dictionary.
        """
        self.prefix, left = "", max_chars
        while self.waiting and (left is None or left > 0):
            name, whole, root = self.waiting.popleft()
            properties = whole["properties"]
            assert isinstance(properties, dict)  # noqa: S101
            count = len(self.sources)
            self.prefix = name
            _Types(root, self).declare(name, whole, properties)
            if left is not None:
                left -= sum(map(len, self.sources[count:]))
        if self.waiting:
            names = " = ".join(name for name, _, _ in self.waiting)
            self.sources.append(f"{names} = dict[str, Any]  # not shown\n")
            self.waiting.clear()

    def imports(self) -> list[str]:
        lines = [] if self.taken.isdisjoint(_BUILTINS) else ["import builtins as _builtins\n"]
        is_named = any("(NamedTuple)" in source for source in self.sources)
        return [*lines, "from typing import NamedTuple\n"] if is_named else lines

    def builtin(self, name: str) -> str:
        """Write a builtin type so that no tool called `list` stands in for it."""
        return f"_builtins.{name}" if name in self.taken else name

    def written(self, union: _Union) -> str:
        if "Any" in union:
            return "Any"
        names = [name for name, kind in union.items() if not kind and name != "None"]
        texts = [self.builtin(name) if name in _BUILTINS else name for name in names]
        if literals := [name for name, kind in union.items() if kind]:
            texts.insert(0, f"Literal[{', '.join(literals)}]")
        return " | ".join([*texts, "None"] if "None" in union else texts)

    def adopt(self, returned: Returned) -> str:
        """Declare the classes of a type that is known as it stands, and return it."""
        for source in map(self._spelled, returned.classes):
            if source not in self.sources:
                self.sources.append(source)
        return self._spelled(returned.type)

    def _spelled(self, source: str) -> str:
        return _BUILTIN.sub(lambda found: self.builtin(found[0]), source)

    def reserve(self, hint: str) -> str:
        stem = f"{self.prefix}{_camel(hint)}"
        stem = stem if stem.isidentifier() else f"Item{stem}"
        names = (f"{stem}{count}" if count > 1 else stem for count in range(1, len(self.taken) + 2))
        name = next(name for name in names if name not in self.taken)
        self.taken.add(name)
        return name


@dataclass(slots=True)
class _Types:
    """Turns schemas into type expressions and declares the classes they need.

    Loose types are for the parameters of code that is checked. The checker infers
    `rows = [{"id": 1}]` as `list[dict[str, int]]`, which is no list of a `TypedDict`, a union or
    a literal. Correct code must pass, so inside containers only plain types are told apart.
    """

    root: JsonObject
    classes: _Classes
    is_loose: bool = False
    shows_defaults: bool = False
    schemas_left: int = _MAX_SCHEMAS
    # By identity of the schema, which is kept so that its identity stays its own.
    named: dict[int, tuple[Json, str]] = field(default_factory=dict)

    def text(self, schema: Json, hint: str, depth: int = 0) -> str:
        return self.classes.written(self.of(schema, hint, depth))

    def of(self, schema: Json, hint: str, depth: int = 0) -> _Union:
        self.schemas_left -= 1
        whole = merged(schema, self.root)
        if not isinstance(whole, dict) or depth > _MAX_DEPTH or self.schemas_left < 0:
            return _ANY
        literals = [whole["const"]] if "const" in whole else whole.get("enum")
        if isinstance(literals, list) and literals:
            return _literals(literals)
        union: _Union = {}
        for variant in _variants(whole):
            union |= self.of(variant, hint, depth + 1)
        for kind in () if union else _kinds(whole):
            union |= self._kind(kind, schema, whole, hint, depth)
        return union or _ANY

    def _kind(self, kind: str, schema: Json, whole: JsonObject, hint: str, depth: int) -> _Union:
        if kind == "array":
            item = self._inside(whole.get("items", True), f"{hint}_item", depth)
            return {f"{self.classes.builtin('list')}[{item}]": None}
        if kind == "object":
            return {self._object(schema, whole, hint, depth): None}
        return {_KINDS[kind]: None} if kind in _KINDS else _ANY

    def _object(self, schema: Json, whole: JsonObject, hint: str, depth: int) -> str:
        properties, others = whole.get("properties"), whole.get("additionalProperties", True)
        if not isinstance(properties, dict) or not properties:
            return self._dict(self._inside(others, hint, depth))
        is_too_large = len(properties) > _MAX_KEYS or max(map(len, properties)) > _MAX_KEY_CHARS
        if self.is_loose or is_too_large:
            return self._dict("Any")
        source = resolve(schema, self.root)
        is_named = isinstance(schema, dict) and "$ref" in schema
        if is_named and isinstance(self.root.get("$defs"), SharedSchemas):
            return self.classes.name_shared(source, whole, self.root, _hint(schema, hint))
        if id(source) not in self.named:
            self.named[id(source)] = source, self.classes.reserve(_hint(schema, hint))
            self.declare(self.named[id(source)][1], whole, properties, depth)
        return self.named[id(source)][1]

    def _dict(self, value: str) -> str:
        return f"{self.classes.builtin('dict')}[{self.classes.builtin('str')}, {value}]"

    def _inside(self, schema: Json, hint: str, depth: int) -> str:
        union = self.of(schema, hint, depth + 1)
        if not self.is_loose:
            return self.classes.written(union)
        plain = {kind or name for name, kind in union.items()}
        # A list of int is no list of float.
        only = plain.pop() if len(plain) == 1 and "float" not in plain else "Any"
        return self.classes.written({only: None})

    def declare(self, name: str, whole: JsonObject, properties: JsonObject, depth: int = 0) -> None:
        """Declare the class of an object."""
        types = {key: self.text(each, key, depth + 1) for key, each in properties.items()}
        required = whole.get("required")
        mandatory = {key for key in types if isinstance(required, list) and key in required}
        self.classes.sources.append(_typed_dict(name, types, mandatory))


def _typed_dict(name: str, types: Mapping[str, str], mandatory: set[str]) -> str:
    fields = {
        key: text if key in mandatory or not mandatory else f"NotRequired[{text}]"
        for key, text in types.items()
    }
    total = "" if mandatory else ", total=False"
    # In a class body, a key with two leading underscores would be mangled.
    if all(_is_plain(key) and not key.startswith("__") for key in fields):
        body = "".join(f"    {key}: {text}\n" for key, text in fields.items())
        return f"class {name}(TypedDict{total}):\n{body}"
    pairs = ", ".join(f"{key!r}: {text}" for key, text in fields.items())
    return f"{name} = TypedDict({name!r}, {{{pairs}}}{total})\n"


def _literals(values: list[Json]) -> _Union:
    """Return the values, or only their types where they are too long or cannot be literals."""
    union: _Union = {}
    for value in values:
        if value is None:
            union["None"] = None
        elif isinstance(value, str | int):
            union[repr(value)] = type(value).__name__
        else:
            return _ANY
    if sum(map(len, union)) > _MAX_LITERAL_CHARS:
        return {kind or name: None for name, kind in union.items()}
    return union


def _variants(whole: JsonObject) -> list[Json]:
    """Return the alternatives of `anyOf` or `oneOf`, each with the type that they share.

    Beside properties, alternatives only say which of them go together, which is no type.
    """
    found = whole.get("anyOf") or whole.get("oneOf")
    if not isinstance(found, list) or "properties" in whole:
        return []
    shared: JsonObject = {"type": whole["type"]} if "type" in whole else {}
    return [shared | each if isinstance(each, dict) else each for each in found]


def _kinds(whole: JsonObject) -> list[str]:
    kind = whole.get("type", "object" if "properties" in whole else None)
    kinds = kind if isinstance(kind, list) else [kind]
    return [each for each in kinds if isinstance(each, str)]


def _hint(schema: Json, fallback: str) -> str:
    """Name a class after its definition, else after its property."""
    reference = schema.get("$ref") if isinstance(schema, dict) else None
    return reference.rpartition("/")[2] if isinstance(reference, str) else fallback


def _camel(text: str) -> str:
    return "".join(word.capitalize() for word in words(text))[:_MAX_KEY_CHARS]


def _is_plain(name: str) -> bool:
    """Tell whether Python takes `name` as it is; letters of other alphabets it may fold."""
    return name.isascii() and name.isidentifier() and not keyword.iskeyword(name)


def _docs(tool: Tool) -> str:
    text, said = _documentation(tool.listed.description[:_MAX_READ_CHARS])
    root = tool.listed.input_schema
    notes = [
        f"    {each.identifier}: {note}\n"
        for each in parameters_of(tool).listed[:_MAX_PARAMETERS]
        if (note := _note(each, root, said.get(each.name, "")))
    ]
    summary = cut(text, _MAX_SUMMARY_CHARS)
    if not notes:
        return f'    """{_quoted(summary)}"""\n' if summary else "    ...\n"
    return f'    """{_quoted(summary)}\n\n{_quoted("".join(notes))}    """\n'


def _documentation(description: str) -> tuple[str, dict[str, str]]:
    """Split off an `Args:` section; return the rest, and what is said of each parameter."""
    if not (heading := _ARGUMENTS.search(description)):
        return description, {}
    following = _SECTION.search(description, heading.end())
    end = following.start() if following else len(description)
    said = dict(_ARGUMENT.findall(description, heading.end(), end))
    return description[: heading.start()] + description[end:], said


def _note(parameter: Parameter, root: JsonObject, said: str) -> str:
    """Say what the name and the type of a parameter do not."""
    resolved = resolve(parameter.schema, root)
    schemas = [each for each in (parameter.schema, resolved) if isinstance(each, dict)]
    texts = [text for each in schemas if isinstance(text := each.get("description"), str)]
    sentence = _first_sentence(_OPTIONAL.sub("", texts[0] if texts else said))
    note = cut(sentence, _MAX_NOTE_CHARS).rstrip(".")
    default = next((each["default"] for each in schemas if "default" in each), None)
    is_plain = isinstance(default, str | int | float) and default not in ("", False)
    is_plain = is_plain and len(repr(default)) > _MAX_SHOWN_DEFAULT_CHARS  # else it is shown above
    shown = cut(repr(default), _MAX_DEFAULT_CHARS) if is_plain else ""
    return f"{note} (default {shown})".lstrip() if shown and "default" not in note.lower() else note


def _first_sentence(text: str) -> str:
    return _SENTENCE_END.split(text[:_MAX_READ_CHARS].strip(), maxsplit=1)[0]


def cut(text: str, max_chars: int) -> str:
    """Put `text` on one line of printable characters, cut after a sentence or else a word."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    if len(line) <= max_chars:
        return line
    start = line[:max_chars]
    end = max(start.rfind(stop) for stop in (". ", "! ", "? "))
    return start[: end + 1] if end > max_chars // 2 else f"{start[: start.rfind(' ')]}…"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"""', "'''")
    return f"{escaped} " if escaped.endswith('"') else escaped
