"""JSON that stands in a text: which places of it are personal by their fields. Pure.

A file that a tool returns as a text is a string in the answer, and often JSON itself. Places are
found in the text as it is written, so that all else of it stays to the byte.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from toolfold.privacy.fields import Field, FieldRules, is_plausible
from toolfold.privacy.pieces import kind_of_leaf
from toolfold.privacy.reveal import MAX_DEPTH, too_deep
from toolfold.privacy.spans import Span

Find = Callable[[str], list[Span]]

_DEEPEST: Final = 3
"""How often JSON may stand in a string of JSON that stands in a string."""
_BEGINS: Final = re.compile(r"^[ \t\r\ufeff]*(?=[\[{])", re.MULTILINE)
_SCALAR: Final = re.compile(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|-?(?:\d[\d.eE+-]*|Infinity)|NaN', re.DOTALL
)
_WRITTEN: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL
)


class _Object(list[tuple[str, Any]]):
    """An object of JSON with every key, also one that is there twice."""


_decode: Final = json.JSONDecoder(object_pairs_hook=_Object).raw_decode


def find_in_json(text: str, rules: FieldRules, find: Find, *, depth: int = 0) -> list[Span]:
    """Return what is personal in the JSON within a text, by its fields or by `find`.

    `find` looks through strings that are written with escapes; others it sees in the text itself.

    Raises:
        BadInput: The JSON is nested too deeply.
    """
    spans: list[Span] = []
    for start, end, value in _blocks(text):
        tokens = _SCALAR.finditer(text, start, end)
        for token, leaf, kind in _leaves(value, rules.root, None, tokens):
            if is_plausible(kind, leaf):
                quote = int(isinstance(leaf, str))
                spans.append(Span(str(kind), token.start() + quote, token.end() - quote))
            elif isinstance(leaf, str):
                spans += _within(token, leaf, rules, find, depth)
    return [span for span in spans if span.start < span.end]


def numbers_in_json(text: str) -> frozenset[tuple[int, int]]:
    """Return where numbers stand in the JSON within a text: a placeholder there needs quotes."""
    return frozenset(
        token.span()
        for start, end, _ in _blocks(text)
        for token in _SCALAR.finditer(text, start, end)
        if token[0][0] != '"'
    )


def _blocks(text: str) -> Iterator[tuple[int, int, Any]]:
    """Yield the objects and lists that begin a line, with their places.

    What is none costs as long as it takes to find that out. Once that is too long, only what ends
    in its own line is looked for.
    """
    position, budget = 0, 4 * len(text)
    has_any = "{" in text or "[" in text
    while has_any and (begins := _BEGINS.search(text, position)):
        start = begins.end()
        line_end = text.find("\n", start) % (len(text) + 1)
        try:
            if budget > 0:
                value, end = _decode(text, start)
            else:
                value, length = _decode(text[start:line_end])
                end = start + length
        except (json.JSONDecodeError, RecursionError) as error:
            budget -= getattr(error, "pos", len(text)) - start
            position = line_end
            continue
        yield start, end, value
        position = end


def _leaves(
    value: Any, field: Field, inherited: str | None, tokens: Iterator[re.Match[str]]
) -> Iterator[tuple[re.Match[str], Any, str | None]]:
    """Yield keys, texts and numbers with their places and kinds, as they are written."""
    if len(field.path) > MAX_DEPTH:
        raise too_deep()
    kind = field.kind if field.is_decided else inherited
    if isinstance(value, _Object):
        siblings = [key for key, _ in value]
        for key, each in value:
            yield next(tokens), key, None
            yield from _leaves(each, field.below(key, siblings), kind, tokens)
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each, field.items, kind, tokens)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield next(tokens), value, kind_of_leaf(kind, value)


def _within(
    token: re.Match[str], leaf: str, rules: FieldRules, find: Find, depth: int
) -> Iterator[Span]:
    """Yield what is personal within a string that is not personal as a whole."""
    is_escaped = len(token[0]) != len(leaf) + 2
    found = find(leaf) if is_escaped else []
    if depth < _DEEPEST:
        found += find_in_json(leaf, rules, find, depth=depth + 1)
    if not found:
        return
    places = [match.start() for match in _WRITTEN.finditer(token[0], 1, len(token[0]) - 1)]
    places.append(len(token[0]) - 1)
    for kind, start, end in found:
        yield Span(kind, token.start() + places[start], token.start() + places[end])
