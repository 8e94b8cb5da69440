"""All tools by category, in forms that cost few tokens. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from toolfold.catalog.binding import Parameter, merged, parameters_of, resolve
from toolfold.catalog.catalog import ServerStatus
from toolfold.catalog.names import words
from toolfold.catalog.stubs import sentence, signature
from toolfold.catalog.tool import Tool
from toolfold.catalog.validation import is_match
from toolfold.jsontypes import Json, JsonObject
from toolfold.memory.verbs import VERBS

_OWN: Final[Mapping[str, str]] = {
    "memory": "notes that last",
    "events": "what happened when",
    "graph": "entities, relations",
    "documents": "files as notes",
    "consolidation": "tidy notes",
    "skills": "saved functions",
    "workspace": "files",
}
"""What is built in."""

_ACTIONS: Final = """
    a add all and append archive assign browser by cancel check clear close complete convert copy
    count create delete describe do download draft drop edit end execute export fetch fill filter
    find for format from get handle in insert invite is leave list lookup make manage mark modify
    move new of on open or patch post press print push put query read remove rename replace reply
    resolve restore retrieve run save search select send set share start stop submit take the to
    transform type update upload view wait watch with write
"""
_SUBJECTS: Final = 3
_OWN_CHARS: Final = 16
_DISCOVERED_CHARS: Final = 36
_MAX_DESCRIPTION_CHARS: Final = 4_000
_MAX_TYPE_CHARS: Final = 200
_MAX_DEPTH: Final = 3
_MAX_CHOICES: Final = 20
_MAX_SAMPLE_DEPTH: Final = 3
_MAX_SAMPLE_ITEMS: Final = 3
_QUOTED: Final = re.compile(r"""['"`]([^'"`]{1,200})['"`]""")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCategory:
    """Tools that belong together: those of one server, or of one part of what is built in."""

    name: str
    description: str
    tools: tuple[Tool, ...] = ()


class Registry:
    """The tools of a catalog at one moment."""

    def __init__(self, tools: Iterable[Tool], statuses: Iterable[ServerStatus]) -> None:
        grouped: dict[str, list[Tool]] = {}
        for tool in tools:
            grouped.setdefault(category_of(tool), []).append(tool)
        self.categories = {
            name: ToolCategory(name=name, description=_about(name, found), tools=tuple(found))
            for name, found in grouped.items()
        }
        for status in statuses:
            name = _apart(status.module or status.name)
            if name not in self.categories:
                fault = f"not usable: {status.fault}" if status.fault else "still starting"
                self.categories[name] = ToolCategory(name=name, description=fault)
        self.total = sum(len(each.tools) for each in self.categories.values())

    def discover(self, *, limit: int, offset: int) -> Json:
        """Return every category with a few of its tools."""
        longest = max((len(each.tools) for each in self.categories.values()), default=0)
        end = offset + limit
        return {
            "categories": {
                name: {
                    "description": each.description,
                    "count": len(each.tools),
                    "tools": [_discovered(tool) for tool in each.tools[offset:end]],
                }
                for name, each in sorted(self.categories.items())
            },
            "total_tools": self.total,
            "next_offset": end if end < longest else None,
        }


def category_of(tool: Tool) -> str:
    """Return the category of a tool."""
    if not tool.is_built_in:
        return _apart(tool.module)
    verb = VERBS.get(tool.own_path)
    return verb.category if verb else tool.module


def _apart(module: str) -> str:
    """Return the category of a server, which must not be one of ours."""
    return f"{module}_mcp" if module in _OWN else module


def _about(name: str, tools: Sequence[Tool]) -> str:
    """Say what a category is about: servers do not say, so their tools must."""
    if all(tool.is_built_in for tool in tools):
        return _OWN.get(name, "built in")
    beside = {*words(name), *_ACTIONS.split()}
    subjects = Counter(
        _singular(word)
        for tool in tools
        for word in dict.fromkeys(words(tool.function))
        if word not in beside and len(word) > 1
    )
    return ", ".join(word for word, _ in subjects.most_common(_SUBJECTS)) or "tools"


def _singular(word: str) -> str:
    return f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")


def _discovered(tool: Tool) -> Json:
    if tool.is_built_in:  # their categories say it
        return {"name": tool.path, "description": sentence(tool, max_chars=_OWN_CHARS)}
    return {"name": tool.path, "description": sentence(tool, max_chars=_DISCOVERED_CHARS)}


def listed(tool: Tool) -> Json:
    """Return a tool in one line."""
    return {"name": tool.path, "category": category_of(tool), "description": sentence(tool)}


def explained(tool: Tool, query: str) -> Json:
    """Return a tool in one line with how it is called, and what of a query it fits by."""
    wanted = set(words(query))
    named = sorted(wanted & set(words(tool.path)))
    told = sorted((wanted & set(words(tool.listed.description))) - set(named))
    reasons = [
        *([f"its name has {', '.join(named)}"] if named else []),
        *([f"its description has {', '.join(told)}"] if told else []),
    ]
    why = "; ".join(reasons) or ("near in meaning" if wanted else "")
    return {
        "name": tool.path,
        "category": category_of(tool),
        "description": sentence(tool),
        "call": signature(tool),
        "why": why,
    }


def described(tool: Tool, seen: str | None) -> JsonObject:
    """Return how to call a tool. `seen` is what it was seen to return."""
    parameters = parameters_of(tool)
    root = tool.listed.input_schema
    return {
        "name": tool.path,
        "category": category_of(tool),
        "description": tool.listed.description[:_MAX_DESCRIPTION_CHARS],
        "call": signature(tool),
        "parameters": [_parameter(each, root) for each in parameters.listed],
        "takes_others": parameters.takes_others,
        "returns": _returned(tool, seen),
        "example": {
            "arguments": {
                each.name: _sample(each.schema, root, each.name)
                for each in parameters.listed
                if each.required
            }
        },
        "read_only": tool.listed.read_only,
        "destructive": bool(tool.listed.destructive),
        "idempotent": tool.listed.idempotent,
    }


def _parameter(parameter: Parameter, root: JsonObject) -> Json:
    found = merged(parameter.schema, root)
    schema = found if isinstance(found, dict) else {}
    said = schema.get("description")
    shown: JsonObject = {
        "name": parameter.name,
        "type": type_words(schema, root),
        "required": parameter.required,
        "description": said[:_MAX_DESCRIPTION_CHARS] if isinstance(said, str) else "",
    }
    return shown | {"default": schema["default"]} if "default" in schema else shown


def _returned(tool: Tool, seen: str | None) -> str:
    if tool.listed.returned is not None:
        return tool.listed.returned.type
    if (schema := tool.listed.output_schema) is not None:
        return type_words(schema, schema)
    return f"seen to return {seen}" if seen else "any"


def type_words(schema: Json, root: JsonObject) -> str:
    """Say of what type a value is, as short as can be; `root` is what references lead into."""
    return _words_of(schema, root, depth=0)[:_MAX_TYPE_CHARS]


def _words_of(found: Json, root: JsonObject, *, depth: int) -> str:
    schema = resolve(found, root)
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return "any"
    if isinstance(choices := schema.get("enum"), list):
        return "one of " + ", ".join(map(str, choices[:_MAX_CHOICES]))
    for union in ("anyOf", "oneOf"):
        if isinstance(parts := schema.get(union), list):
            said = [_words_of(part, root, depth=depth + 1) for part in parts[:_MAX_CHOICES]]
            return " or ".join(dict.fromkeys(said))
    kinds = schema.get("type", "any")
    items = schema.get("items")
    words_by_kind = [str(kind) for kind in (kinds if isinstance(kinds, list) else [kinds])]
    if items is not None and "array" in words_by_kind:
        of_items = f"array of {_words_of(items, root, depth=depth + 1)}"
        words_by_kind[words_by_kind.index("array")] = of_items
    return " or ".join(words_by_kind)


def _sample(found: Json, root: JsonObject, name: str, *, depth: int = 0) -> Json:
    """Return a value that a parameter could have, as far as its schema is simple."""
    followed = merged(found, root)
    schema = followed if isinstance(followed, dict) else {}
    if given := _given(schema):
        return given[0]
    for union in ("anyOf", "oneOf"):
        if isinstance(parts := schema.get(union), list) and parts and depth < _MAX_SAMPLE_DEPTH:
            return _sample(parts[0], root, name, depth=depth + 1)
    kinds = schema.get("type")
    kind = str(kinds[0] if isinstance(kinds, list) and kinds else kinds)
    if kind == "array":
        few = int(min(_bound(schema, "minItems"), _MAX_SAMPLE_ITEMS)) * (depth < _MAX_SAMPLE_DEPTH)
        return [_sample(schema.get("items"), root, name, depth=depth + 1) for _ in range(few)]
    return _sample_object(schema, root, depth) if kind == "object" else _plain(schema, kind, name)


def _given(schema: JsonObject) -> list[Json]:
    """Return values that a schema names itself."""
    named = [schema[key] for key in ("default", "example", "const") if key in schema]
    for key in ("examples", "enum"):
        values = schema.get(key)
        named += values if isinstance(values, list) else []
    return named


def _sample_object(schema: JsonObject, root: JsonObject, depth: int) -> JsonObject:
    """Return an object with the properties that are required."""
    required, properties = schema.get("required"), schema.get("properties")
    if not isinstance(required, list) or depth >= _MAX_SAMPLE_DEPTH:
        return {}
    known = properties if isinstance(properties, dict) else {}
    names = [str(each) for each in required[:_MAX_CHOICES]]
    return {each: _sample(known.get(each), root, each, depth=depth + 1) for each in names}


def _plain(schema: JsonObject, kind: str, name: str) -> Json:
    """Return a value without parts: the number nearest to 1, or a text."""
    if kind in ("boolean", "null"):
        return True if kind == "boolean" else None
    if kind not in ("integer", "number"):
        return _sample_text(schema, name)
    lowest = max(_bound(schema, "minimum", 1), _bound(schema, "exclusiveMinimum") + 1)
    value = min(lowest, _bound(schema, "maximum", lowest))
    return ceil(value) if kind == "integer" else float(value)


def _sample_text(schema: JsonObject, name: str) -> str:
    """Return a parameter's name, or what its description quotes, whichever fits."""
    text = name.ljust(int(min(_bound(schema, "minLength"), _MAX_TYPE_CHARS)), "x")
    text = text[: int(_bound(schema, "maxLength", len(text)))]
    if not isinstance(pattern := schema.get("pattern"), str):
        return text
    quoted = _QUOTED.findall(str(schema.get("description", ""))[:_MAX_DESCRIPTION_CHARS])
    tried = (text, *quoted, text.upper(), text.lower())
    return next((each for each in tried if is_match(pattern, each)), text)


def _bound(schema: JsonObject, key: str, default: float = 0) -> float:
    value = schema.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return default
    return value if abs(value) <= 2**53 else default
