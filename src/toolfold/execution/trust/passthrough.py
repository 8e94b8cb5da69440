"""What clients ask of upstreams by themselves, concealed in the form that MCP has for it."""

import json
from typing import Any, Final, TypeVar

import mcp_types as types

from toolfold.catalog.textrules import parse_text
from toolfold.catalog.tool import Blob
from toolfold.execution.artifacts import redact_blob
from toolfold.execution.trust.privacy_border import OutgoingArguments, PrivacyBorder
from toolfold.jsontypes import Json, JsonObject

ItemT = TypeVar("ItemT", types.Prompt, types.Resource, types.ResourceTemplate)

_LONG: Final = 1 << 20  # of what nobody has measured
_NAMES: Final = ("uri", "uri_template", "name", "title", "description", "mime_type")


class PassthroughBorder:
    """Conceals what one upstream answered. Images and other binaries stay as they are."""

    def __init__(
        self, privacy_border: PrivacyBorder, server: str, sent: OutgoingArguments | None = None
    ) -> None:
        self._sent = sent
        self._privacy_border = privacy_border
        self._server = server

    async def result(self, result: types.CallToolResult) -> types.CallToolResult:
        """Conceal what a tool answered."""
        changes = {
            "content": [await self._block(block) for block in result.content],
            "structured_content": await self._value(result.structured_content, _LONG),
            "meta": await self._value(result.meta, _LONG),
        }
        return result.model_copy(update=changes)

    async def prompt(self, result: types.GetPromptResult) -> types.GetPromptResult:
        """Conceal a prompt."""
        messages = [
            message.model_copy(update={"content": await self._block(message.content)})
            for message in result.messages
        ]
        changes = {
            "messages": messages,
            "description": await self._value(result.description),
            "meta": await self._value(result.meta, _LONG),
        }
        return result.model_copy(update=changes)

    async def contents(self, result: types.ReadResourceResult) -> types.ReadResourceResult:
        """Conceal what a resource holds."""
        contents = [await self._resource(each) for each in result.contents]
        meta = await self._value(result.meta, _LONG)
        return result.model_copy(update={"contents": contents, "meta": meta})

    async def completion(self, result: types.CompleteResult) -> types.CompleteResult:
        """Conceal what may complete an argument."""
        values = await self._value(list[Json](result.completion.values))
        completion = result.completion.model_copy(update={"values": values})
        meta = await self._value(result.meta, _LONG)
        return result.model_copy(update={"completion": completion, "meta": meta})

    async def item(self, listed: ItemT) -> ItemT:
        """Conceal what is listed of a prompt, a resource or a template."""
        item: Any = await self._named(listed, _NAMES)
        if isinstance(item, types.Prompt) and item.arguments:
            said = [
                each.model_copy(update={"description": await self._value(each.description)})
                for each in item.arguments
            ]
            item = item.model_copy(update={"arguments": said})
        concealed: ItemT = item
        return concealed

    async def _block(self, block: Any) -> Any:
        block = block.model_copy(update={"meta": await self._value(block.meta, _LONG)})
        match block:
            case types.TextContent():
                return block.model_copy(update={"text": await self._text(block.text)})
            case types.EmbeddedResource():
                return block.model_copy(update={"resource": await self._resource(block.resource)})
            case types.ResourceLink():
                return await self._named(block, _NAMES)
        return block

    async def _resource(self, contents: Any) -> Any:
        contents = await self._named(contents, ("uri", "mime_type"))
        if isinstance(contents, types.TextResourceContents):
            return contents.model_copy(update={"text": await self._text(contents.text)})
        blob = Blob(mime_type=contents.mime_type or "", base64=contents.blob)
        covered = await redact_blob(blob, self._privacy_border.cover(self._server, self._sent))
        return contents.model_copy(update={"blob": covered.base64})

    async def _named(self, item: Any, names: tuple[str, ...]) -> Any:
        held = {name: getattr(item, name) for name in names if getattr(item, name, None)}
        changes: JsonObject = {
            name: await self._value(str(text), len(str(text))) for name, text in held.items()
        }
        changes["meta"] = await self._value(item.meta, _LONG)
        return item.model_copy(update=changes)

    async def _text(self, text: str) -> str:
        """Conceal a text; one that is JSON by its fields."""
        value = parse_text(text)
        concealed = await self._value(value, len(text))
        if isinstance(concealed, str):
            return concealed
        return text if concealed == value else json.dumps(concealed, ensure_ascii=False)

    async def _value(self, value: Json, size: int = 0) -> Json:
        if value is None:
            return None
        return await self._privacy_border.conceal(self._server, value, size, sent=self._sent)
