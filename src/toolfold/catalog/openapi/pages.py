"""Pages of answers: how an operation says where its next one is. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final
from urllib.parse import parse_qs, urlsplit

from toolfold.catalog.openapi.model import ApiOperation, ApiParameter, Cursor
from toolfold.catalog.tool import ListedTool
from toolfold.jsontypes import Json, JsonObject

PAGES: Final = "pages"

# What a parameter that names a page is called, and the answers' field that tells the next one.
_PARAMETERS: Final = re.compile(
    r"(?:page|next|continuation|start|pagination|scroll)?[_-]?(?:token|cursor|marker|key|after)"
    r"|after|cursor|marker|starting[_-]?after|exclusive[_-]?start[_-]?key|offset|page",
    re.IGNORECASE,
)
_FIELDS: Final = re.compile(
    r"next[_-]?(?:page)?[_-]?(?:token|cursor|marker|key|link|url|offset)?"
    r"|(?:continuation|pagination|end)[_-]?(?:token|cursor)|cursor|after",
    re.IGNORECASE,
)
_HOLDERS: Final = re.compile(
    r"meta(?:data)?|paging|pagination|page[_-]?info|links|_links|cursors?|response[_-]?metadata",
    re.IGNORECASE,
)
_LINK: Final = re.compile(r"<([^<>]*)>([^<]*)")
_NEXT: Final = re.compile(r"""rel\s*=\s*["']?(?:[^"']*\s)?next["'\s;,]?""", re.IGNORECASE)


def pages_tool(taken: Iterable[str]) -> ListedTool:
    """Return the tool that follows the pages of an answer, under a name that is free."""
    name = PAGES if PAGES not in set(taken) else "all_pages"
    return ListedTool(
        name=name,
        description=(
            "Return the items of an answer of this API and of all pages after it, as one list: "
            "for x in pages(list_users()). The answer must be whole, as the call returned it."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "first": {"description": "What a call of this API returned."},
                "max_pages": {"type": "integer", "minimum": 1, "default": 100},
            },
            "required": ["first"],
            "additionalProperties": False,
        },
        output_schema={
            "type": "object",
            "properties": {"result": {"type": "array", "items": {}}},
            "x-fastmcp-wrap-result": True,
        },
        read_only=True,
    )


def find_cursor(
    method: str,
    parameters: Iterable[ApiParameter],
    output: JsonObject | None,
    resolved: Callable[[Json], Json],
) -> Cursor | None:
    """Say how the pages of an operation follow each other, if its specification shows that."""
    if method != "get":
        return None
    names = [each.argument for each in parameters if each.place == "query"]
    cursors = [name for name in names if _PARAMETERS.fullmatch(name)]
    if not cursors:
        return None
    for path in _fields(resolved(output), resolved):
        if cursors:
            best = min(cursors, key=lambda name: (name.lower() in {"page", "offset"}, name))
            return Cursor(parameter=best, field=path)
    return None


def _fields(schema: Json, resolved: Callable[[Json], Json]) -> Iterator[tuple[str, ...]]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, each in properties.items() if isinstance(properties, dict) else ():
        inner = resolved(each)
        if _FIELDS.fullmatch(name) and not (isinstance(inner, dict) and "properties" in inner):
            yield (name,)
        elif _HOLDERS.fullmatch(name) and isinstance(inner, dict):
            held = inner.get("properties")
            for key in held if isinstance(held, dict) else ():
                if _FIELDS.fullmatch(key):
                    yield name, key


def next_link(header: str) -> str | None:
    """Return the URL of the next page from a `Link` header, if it names one."""
    for url, parameters in _LINK.findall(header[:8_000]):
        if _NEXT.search(parameters):
            return str(url)
    return None


def next_arguments(
    operation: ApiOperation, arguments: JsonObject, value: Json, link: str | None
) -> JsonObject | None:
    """Return the arguments that ask for the page after `value`; None if it was the last.

    Of a URL, the link's or one that the answer holds, only the query counts, and of that only
    what the operation declares: where it goes stays what it was.
    """
    target = link
    if target is None and operation.cursor is not None:
        found = _at(value, operation.cursor.field)
        if isinstance(found, str) and re.match(r"(?:https?:/)?/|\?", found):
            target = found
        elif isinstance(found, str | int) and not isinstance(found, bool) and found != "":
            return arguments | {operation.cursor.parameter: found}
    if target is None:
        return None
    query = parse_qs(urlsplit(target).query, keep_blank_values=True, max_num_fields=200)
    by_name = {each.name: each.argument for each in operation.parameters if each.place == "query"}
    changed: JsonObject = {
        by_name[name]: values[-1] for name, values in query.items() if name in by_name
    }
    following = arguments | changed
    return following if following != arguments else None


def items_of(value: Json) -> list[Json]:
    """Return the items of a page: a list, or the longest list that an object holds."""
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return []
    lists = [each for each in value.values() if isinstance(each, list)]
    for each in value.values():
        if isinstance(each, dict):
            lists += [inner for inner in each.values() if isinstance(inner, list)]
    return max(lists, key=len, default=[])


def _at(value: Json, path: tuple[str, ...]) -> Json:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
