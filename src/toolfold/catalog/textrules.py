"""By which rule the text that a tool answers becomes a value: one rule for each tool. Pure.

A tool that declares nothing answers JSON, a Python literal or prose, and code must not find a list
today and a text tomorrow. So its first answers decide: a list or an object, written as JSON or as
Python writes it, becomes that value; prose makes the tool one of texts for good. After three values
the rule is settled. Texts that read like errors and empty ones decide nothing.
"""

import ast
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from toolfold.jsontypes import Json, JsonObject

Kind = Literal["value", "prose", "error", "empty"]

_SETTLED: Final = 3
_LITERAL_CHARS: Final = 32_768  # beyond it, building a syntax tree takes too long
_ERROR: Final = re.compile(
    r"\s*(?:[\w'\"./-]+ ){0,4}(?:\w*error|\w*exception|failed|failure)\b[^\n]{0,120}?(?::|$)",
    re.IGNORECASE,
)
_TOKEN: Final = re.compile(
    r"""('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")|\b(None|True|False)\b|([()])"""
)
_WRAPPERS: Final = frozenset({"content", "result"})
_WORDS: Final = {"None": "null", "True": "true", "False": "false", "(": "[", ")": "]"}


@dataclass(frozen=True, slots=True)
class TextRule:
    """What is known of how one tool answers."""

    values: int = 0
    """How many of its first answers were values."""
    is_text: bool = False
    """Whether one of them was prose."""
    may_fail: bool = False
    """Whether it answered with the text of an error, and did not say so."""
    unwraps: bool | None = None
    """Whether the only property of its answers repeats their text; None while that is open."""

    @property
    def is_settled(self) -> bool:
        """Whether further answers change nothing."""
        return self.is_text or self.values >= _SETTLED

    def read(self, text: str) -> Json:
        """Return what a text is by this rule."""
        return text if self.is_text else parse_text(text)

    def after(self, texts: Iterable[str]) -> "TextRule":
        """Return the rule after an answer of these texts."""
        kinds = {kind_of(text) for text in texts}
        rule = replace(self, may_fail=self.may_fail or "error" in kinds)
        if rule.is_settled or not kinds or kinds & {"error", "empty"}:
            return rule
        if "prose" in kinds:
            return replace(rule, is_text=True)
        return replace(rule, values=rule.values + 1)


OPEN: Final = TextRule()
TEXT: Final = TextRule(is_text=True)


def parse_text(text: str) -> Json:
    """Return the list or object that `text` is as a whole, or the text itself.

    A file that reads `42` is still a text.
    """
    start = text.lstrip()[:1]
    if start not in {"{", "["}:
        return text
    for parse in (json.loads, _literal):
        try:
            value: Json = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        if isinstance(value, dict | list):
            return value
    return text


def kind_of(text: str) -> Kind:
    """Say what a text is: the value it holds as a whole, prose, an error, or nothing."""
    if not text.strip():
        return "empty"
    if not isinstance(parse_text(text), str):
        return "value"
    return "error" if _ERROR.match(text) else "prose"


def only_property(schema: JsonObject | None) -> tuple[str, Json] | None:
    """Return the property of an object that may only be wrapped in it, with its declaration."""
    properties = schema.get("properties") if schema else None
    if not isinstance(properties, dict) or len(properties) != 1:
        return None
    ((name, declared),) = properties.items()
    # What has a name of its own, such as `entities`, is more than a wrapper, unless it is text.
    is_wrapper = name in _WRAPPERS or is_declared_text(declared)
    return (str(name), declared) if is_wrapper else None


def unwrapped_property(schema: JsonObject | None, rule: TextRule) -> tuple[str, Json] | None:
    """Return the property that stands for the whole answer of a tool, if one does.

    Until the tool has answered, the names under which servers wrap a value are taken for it.
    """
    only = only_property(schema)
    if only is None or rule.unwraps is False:
        return None
    return only if rule.unwraps or only[0] in _WRAPPERS else None


def is_declared_text(declared: Json) -> bool:
    """Whether a schema says that a value is a text and nothing else."""
    return isinstance(declared, dict) and declared.get("type") == "string"


def repeats(texts: list[str], value: Json) -> bool:
    """Whether the texts of an answer say just what a value does."""
    text = "\n".join(texts)
    if isinstance(value, str):
        return text == value
    if isinstance(value, list) and len(texts) == len(value) != 1:
        return all(repeats([each], item) for each, item in zip(texts, value, strict=True))
    try:
        said: Json = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return said == value


def to_json(rule: TextRule) -> JsonObject:
    """Return a rule as JSON."""
    return {
        "values": rule.values,
        "is_text": rule.is_text,
        "may_fail": rule.may_fail,
        "unwraps": rule.unwraps,
    }


def from_json(entry: Any) -> TextRule:
    """Return the rule that `to_json` wrote. Raises TypeError, KeyError or ValueError if none."""
    unwraps = entry["unwraps"]
    return TextRule(
        values=int(entry["values"]),
        is_text=bool(entry["is_text"]),
        may_fail=bool(entry["may_fail"]),
        unwraps=None if unwraps is None else bool(unwraps),
    )


def _literal(text: str) -> Json:
    """Return the value of a Python literal, with lists for tuples.

    Raises:
        ValueError: It is none, or holds what JSON has not.
    """
    if len(text) > _LITERAL_CHARS:
        value: Json = json.loads(_TOKEN.sub(_as_json, text))
        return value
    return _plain(ast.literal_eval(text.strip()))


def _as_json(token: re.Match[str]) -> str:
    string, word, bracket = token.groups()
    if string is None:
        return _WORDS[word or bracket]
    return json.dumps(ast.literal_eval(string) if "\\" in string else string[1:-1])


def _plain(value: object) -> Json:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("A key is not text.")
        return {key: _plain(item) for key, item in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError("JSON has nothing like it.")
