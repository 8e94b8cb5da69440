"""Results of MCP into answers that code can work with."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import mcp_types as types

from toolfold.catalog.binding import wrapped_result
from toolfold.catalog.large import LargePart
from toolfold.catalog.textrules import (
    OPEN,
    TEXT,
    TextRule,
    is_declared_text,
    only_property,
    parse_text,
    repeats,
    unwrapped_property,
)
from toolfold.catalog.tool import Answer, Blob, LargeAnswer, Tool
from toolfold.errors import ToolFailed
from toolfold.jsontypes import Json

# By which rule the text that a tool answers becomes a value: one rule for each tool. Pure.
#
# A tool that declares nothing answers JSON, a Python literal or prose, and code must not find a
# list today and a text tomorrow. So its first answers decide: a list or an object, written as
# JSON or as Python writes it, becomes that value; prose makes the tool one of texts for good.
# After three values the rule is settled. Texts that read like errors and empty ones decide
# nothing.


_MAX_ERROR_CHARS = 2_000

Read = Callable[[str], Json]
"""Returns what a text is."""

Take = Callable[[Any], LargePart | None]
"""Returns what a value of a result stands for; None if it is itself."""


def text_size(result: types.CallToolResult) -> int:
    """Return how many characters the texts of a result have."""
    return sum([len(each.text) for each in result.content if isinstance(each, types.TextContent)])


def large_answer(
    result: types.CallToolResult, take: Take, keep: Callable[[Blob], Json], *, max_bytes: int
) -> tuple[types.CallToolResult, LargeAnswer | None]:
    """Return the result with its parts put in, or what it is if it has more than `max_bytes`.

    Text goes before structured content, which says the same.
    """
    blocks = [block for block in result.content if isinstance(block, types.TextContent)]
    texts = [take(block.text) or block.text for block in blocks]
    structured = take(result.structured_content)
    parts = [part for part in (*texts, structured) if isinstance(part, LargePart)]
    chosen: list[LargePart | str | None] = [*texts] or [structured]
    size = sum(len(text) if isinstance(text, str) else text.size for text in chosen if text)
    is_small = size <= max_bytes or (len(parts) == 1 and parts[0].fits(max_bytes))
    if result.is_error or is_small:
        return (_restored(result, texts, structured) if parts else result), None
    others = [block for block in result.content if not isinstance(block, types.TextContent)]
    told = tuple(_block_value(block, keep) for block in others)
    return result, LargeAnswer(size, partial(_chunks, chosen), told)


def _chunks(parts: Iterable[LargePart | str | None]) -> Iterator[bytes]:
    for number, part in enumerate(parts):
        if number:
            yield b"\n"
        if isinstance(part, LargePart):
            yield from part.chunks()
        elif part is not None:
            yield part.encode("utf-8", "replace")


def _restored(
    result: types.CallToolResult, texts: list[LargePart | str], structured: LargePart | None
) -> types.CallToolResult:
    """Put back what was cut out. Of errors that is only their beginning."""
    words = iter(texts)
    content = [
        block.model_copy(update={"text": _text(next(words), result.is_error)})
        if isinstance(block, types.TextContent)
        else block
        for block in result.content
    ]
    whole = result.structured_content
    if structured is not None:
        whole = None if result.is_error else json.loads(b"".join(structured.chunks()))
    return result.model_copy(update={"content": content, "structured_content": whole})


def _text(part: LargePart | str, is_error: bool) -> str:
    if isinstance(part, str):
        return part
    chunks = islice(part.chunks(), 1) if is_error else part.chunks()
    return b"".join(chunks).decode("utf-8", "replace")


def to_answer(
    tool: Tool, result: types.CallToolResult, keep: Callable[[Blob], Json], rule: TextRule
) -> tuple[Answer, TextRule]:
    """Turn a result into a value by the rule of its tool; return the rule after it, too.

    Structured content goes before text. Several blocks become a list. `keep` takes each image or
    binary and returns what stands for it.

    Raises:
        ToolFailed: The server marked the result as an error; the message is the server's.
    """
    texts = [block.text for block in result.content if isinstance(block, types.TextContent)]
    if result.is_error:
        words = "\n".join(texts).strip() or "the server gave no reason"
        raise ToolFailed(f"{tool.path} failed: {words[:_MAX_ERROR_CHARS]}")
    size = sum(map(len, texts))
    is_text_only = len(texts) == len(result.content)
    if result.structured_content is not None and is_text_only:
        value, rule = _structured(tool, result.structured_content, texts, rule)
        return Answer(value, size or len(json.dumps(value))), rule
    read, rule = _reader(tool, texts, rule)
    if is_text_only and len(texts) != 1:
        return Answer(_joined(texts, read), size), rule
    values = [_block_value(block, keep, read) for block in result.content]
    return Answer(values[0] if len(values) == 1 else values, size), rule


def _structured(tool: Tool, value: Json, texts: list[str], rule: TextRule) -> tuple[Json, TextRule]:
    """Return structured content without what it is only wrapped in."""
    schema = tool.listed.output_schema
    if not isinstance(value, dict):
        return value, rule
    if wrapped_result(schema):
        return value.get("result"), rule
    only = only_property(schema)
    if only is not None and rule.unwraps is None and any(texts) and list(value) == [only[0]]:
        rule = replace(rule, unwraps=repeats(texts, value[only[0]]))
    unwrapped = unwrapped_property(schema, rule)
    return (value.get(unwrapped[0]) if unwrapped else value), rule


def _reader(tool: Tool, texts: list[str], rule: TextRule) -> tuple[Read, TextRule]:
    """Return what makes values of texts, and the rule after these."""
    schema = tool.listed.output_schema
    if schema is None:
        rule = rule.after(texts)
        return rule.read, rule
    declared = wrapped_result(schema) or (unwrapped_property(schema, rule) or ("", None))[1]
    return (TEXT if is_declared_text(declared) else OPEN).read, rule


def size_of(result: types.CallToolResult) -> int:
    """Return about how many characters a result weighs as it is, images and all."""
    return len(result.model_dump_json(exclude_none=True))


def _joined(texts: list[str], read: Read) -> Json:
    """Several text blocks: the values if all are objects or lists, else one text."""
    values = [read(text) for text in texts]
    if values and all(isinstance(value, dict | list) for value in values):
        return values
    return "\n".join(texts)


def _block_value(block: Any, keep: Callable[[Blob], Json], read: Read = parse_text) -> Json:
    match block:
        case types.TextContent():
            return read(block.text)
        case types.ImageContent() | types.AudioContent():
            return keep(Blob(mime_type=block.mime_type, base64=block.data))
        case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
            mime_type = resource.mime_type or "application/octet-stream"
            return keep(Blob(mime_type=mime_type, base64=resource.blob))
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            return read(resource.text)
        case types.ResourceLink():
            return {"uri": str(block.uri), "name": block.name, "mime_type": block.mime_type}
        case _:
            unknown: Json = block.model_dump(mode="json", by_alias=True, exclude_none=True)
            return unknown
