"""What leaves for upstreams and for what is built in, and what comes back: the other side.

Only the border uses this: whoever else could send would pass by the rules, the vault and the
journal. `make check` holds that.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

import anyio
import anyio.to_thread
import mcp_types as types
from anyio.abc import TaskStatus

from toolfold.catalog.known_values import values_of
from toolfold.catalog.offered import Offered, outward, outward_contents
from toolfold.catalog.questions import Elicitor
from toolfold.catalog.results import large_answer, size_of, text_size, to_answer
from toolfold.catalog.tool import Answer, ArtifactSink, Blob, BuiltIn, LargeAnswer, Tool
from toolfold.catalog.upstream import OnWait, Upstream
from toolfold.catalog.upstream_request import (
    CallListener,
    calling,
    completing,
    prompting,
    reading,
)
from toolfold.catalog.watches import Tell
from toolfold.errors import ToolFailed
from toolfold.jsontypes import Json, JsonObject

_SHOWN_CHARS: Final = 300


class Sender:
    """Sends requests, under the bounds that results have."""

    def __init__(
        self,
        upstreams: Iterable[Upstream],
        built_ins: Iterable[BuiltIn],
        offered: Offered,
        *,
        max_result_bytes: int,
        max_large_bytes: int = 0,
    ) -> None:
        self._upstreams: Mapping[str, Upstream] = {each.name: each for each in upstreams}
        self._built_ins = {module.name: module for module in built_ins}
        self._offered = offered
        self._max_result_bytes = max_result_bytes
        self._max_large_bytes = max_large_bytes

    async def call(
        self,
        tool: Tool,
        arguments: JsonObject,
        *,
        keep: ArtifactSink,
        on_wait: OnWait,
        ask: Elicitor | None = None,
        listener: CallListener | None = None,
    ) -> Answer:
        """Call a tool; what its server asks the user meanwhile goes to `ask`.

        What it says of its progress goes to `listener`. `keep` takes images, binaries and what is
        too large to be a value.

        Raises:
            UpstreamError: The server failed, or the tool did.
        """
        if tool.is_built_in:
            answer = await self._built_in(tool).call(tool.listed.name, arguments)
            self._refuse_if_large(tool, answer.size)
            return answer
        upstream = self._upstreams[tool.server]
        request = calling(tool.listed, arguments)
        result = await upstream.run(request, on_wait=on_wait, ask=ask, listener=listener)
        result, large = await self._measured(upstream, result, keep.blob)
        if large is not None:
            return await self._kept(tool, large, keep)
        rule = upstream.shapes.rule(tool.listed)
        try:
            answer, rule = to_answer(tool, result, keep.blob, rule)
        except ToolFailed as error:
            raise ToolFailed(f"{error}{_started_with(tool, upstream)}") from error
        upstream.shapes.settle(tool.listed, rule)
        if answer.size > self._max_result_bytes:  # as structured content alone
            text = json.dumps(answer.value, ensure_ascii=False).encode("utf-8", "replace")
            return await self._kept(tool, LargeAnswer(len(text), lambda: [text]), keep)
        return answer

    def _built_in(self, tool: Tool) -> BuiltIn:
        return self._built_ins[tool.module.removeprefix("toolfold.")]

    async def verb(self, path: str, arguments: JsonObject, **options: Any) -> Any:
        """Answer what is built in, as our own services do; `options` are for these alone.

        Raises:
            ToolfoldError: There is no answer; the message says why.
        """
        module, _, name = path.partition(".")
        return await self._built_ins[module].serve(name, arguments, **options)

    async def _measured(
        self, upstream: Upstream, result: types.CallToolResult, keep: Callable[[Blob], Json]
    ) -> tuple[types.CallToolResult, LargeAnswer | None]:
        """Return a result, or what it is if it is too large: beside the loop if it may be."""
        if upstream.parts.is_empty and text_size(result) <= self._max_result_bytes:
            return result, None
        measure = partial(
            large_answer, result, upstream.parts.take, keep, max_bytes=self._max_result_bytes
        )
        return measure() if upstream.parts.is_empty else await anyio.to_thread.run_sync(measure)

    async def _kept(self, tool: Tool, large: LargeAnswer, keep: ArtifactSink) -> Answer:
        self._refuse_if_large(tool, large.size, self._max_large_bytes)
        return Answer(await keep.large(tool, large), large.size)

    async def forward(
        self, tool: Tool, arguments: JsonObject, *, ask: Elicitor | None = None
    ) -> types.CallToolResult:
        """Call a tool for a client that knows its schema, and return the answer as it is.

        Only the URIs of resources in it become those that clients can read.

        Raises:
            UpstreamError: The server failed, or answered with too much.
        """
        if tool.is_built_in:
            text = await self._built_in(tool).text(tool.listed.name, arguments)
            return types.CallToolResult(content=[types.TextContent(type="text", text=text)])
        upstream = self._upstreams[tool.server]
        result = await upstream.run(calling(tool.listed, arguments), ask=ask)
        result, large = await self._measured(upstream, result, lambda _blob: None)
        self._refuse_if_large(tool, large.size if large else size_of(result))
        blocks = [outward(tool.module, block) for block in result.content]
        return result.model_copy(update={"content": blocks})

    def _refuse_if_large(self, tool: Tool, size: int, most: int = 0) -> None:
        most = most or self._max_result_bytes
        if size > most:
            raise ToolFailed(
                f"{tool.path} answered with {size:,} characters; at most "
                f"{most:,} are taken. Ask for less: a page, fewer fields."
            )

    async def prompt(
        self, name: str, arguments: dict[str, str] | None, *, ask: Elicitor | None
    ) -> types.GetPromptResult:
        """Return a prompt by the name that clients use.

        Raises:
            NotFound: There is none; the message names the nearest.
            UpstreamError: The server failed.
        """
        module, inner = await self._offered.find_prompt(name)
        result = await self._offered.find(module)[1].run(prompting(inner, arguments), ask=ask)
        self._refuse_if_long(name, len(result.model_dump_json()))
        messages = [
            message.model_copy(update={"content": outward(module, message.content)})
            for message in result.messages
        ]
        return result.model_copy(update={"messages": messages})

    async def read(
        self, server: str, uri: str, *, ask: Elicitor | None
    ) -> types.ReadResourceResult:
        """Return what a resource of a server holds, under the URI of the server.

        Raises:
            NotFound: There is no such server.
            UpstreamError: The server failed; if it knows no such resource, the nearest is named.
        """
        module, upstream = self._offered.find(server)
        try:
            result = await upstream.run(reading(uri), ask=ask)
        except ToolFailed as error:
            raise ToolFailed(f"{error}{self._offered.nearest_uri(module, uri)}") from error
        sizes = (
            len(each.text if isinstance(each, types.TextResourceContents) else each.blob)
            for each in result.contents
        )
        self._refuse_if_long(f"{module}: {uri[:_SHOWN_CHARS]}", sum(sizes))
        return result

    async def read_outward(
        self, module: str, uri: str, *, ask: Elicitor | None
    ) -> types.ReadResourceResult:
        """Return what a resource holds, under the URIs that clients use; raises as `read` does."""
        result = await self.read(module, uri, ask=ask)
        contents = [outward_contents(module, each) for each in result.contents]
        return result.model_copy(update={"contents": contents})

    async def watch(
        self,
        module: str,
        uri: str,
        tell: Tell,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Have `tell` called whenever a resource may have changed, until cancelled.

        Raises:
            NotFound: There is no such server.
            UpstreamError: It does not let resources be watched; no more once it has begun.
        """
        await self._offered.find(module)[1].watch(uri, tell, task_status=task_status)

    async def complete(self, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Return what may complete an argument of a prompt or a template.

        Raises:
            NotFound: There is no such prompt or template.
            UpstreamError: The server failed.
        """
        ref = params.ref
        if isinstance(ref, types.PromptReference):
            module, name = await self._offered.find_prompt(ref.name)
            inner = params.model_copy(update={"ref": ref.model_copy(update={"name": name})})
        else:
            module, uri = self._offered.inner(ref.uri)
            inner = params.model_copy(update={"ref": ref.model_copy(update={"uri": uri})})
        upstream = self._offered.find(module)[1]
        offers = upstream.known_offers
        if offers is None or "completions" not in offers.capabilities:
            return types.CompleteResult(completion=types.Completion(values=[]))
        result = await upstream.run(completing(inner.model_copy(update={"meta": None})))
        self._refuse_if_long(f"{module}: a completion", len(result.model_dump_json()))
        return result

    def _refuse_if_long(self, name: str, size: int) -> None:
        if size > self._max_result_bytes:
            raise ToolFailed(
                f"{name} holds {size:,} characters; at most {self._max_result_bytes:,} are taken."
            )


def _started_with(tool: Tool, upstream: Upstream) -> str:
    values = ", ".join(each.value for each in values_of(upstream.config))
    return f" ({tool.module} was started with {values})" if values else ""
