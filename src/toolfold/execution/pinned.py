"""Tools that clients call by themselves, beside `execute_code`."""

import mcp_types as types

from toolfold.catalog.answers import Blob
from toolfold.catalog.catalog import Catalog
from toolfold.catalog.questions import Elicitor
from toolfold.catalog.results import to_answer
from toolfold.catalog.textrules import OPEN
from toolfold.catalog.tool import Tool
from toolfold.errors import ToolfoldError
from toolfold.execution.trust.guard import facts_of, refuse_denied
from toolfold.execution.trust.passthrough import PassthroughBorder
from toolfold.execution.trust.privacy_border import PrivacyBorder, PrivacyRules
from toolfold.journal.journal import Journal
from toolfold.journal.run_writer import JournaledCall, JournaledRun
from toolfold.journal.runs import Origin
from toolfold.jsontypes import Json, JsonObject
from toolfold.policy.files import PolicyFiles


class PinnedCalls:
    """Answers such calls; the journal has each as a run of one call."""

    def __init__(
        self, catalog: Catalog, journal: Journal, rules: PolicyFiles, privacy: PrivacyRules
    ) -> None:
        self._catalog = catalog
        self._rules = rules
        self._journal = journal
        self._privacy = privacy

    async def call(
        self, tool: Tool, arguments: JsonObject, *, origin: Origin, ask: Elicitor | None
    ) -> types.CallToolResult:
        """Return what the server answered, or a result that says why there is no answer."""
        code = f"# The client called {tool.path}, which is pinned."
        with self._journal.begin(origin, code, kind="direct") as run:
            result = await self._call(run, tool, arguments, ask, origin.client)
            run.end(failure="error" if result.is_error else None, reply=_text_of(result))
            run.offer(self._catalog.definitions, shown=origin.shown)
        return result

    async def _call(
        self,
        run: JournaledRun,
        tool: Tool,
        arguments: JsonObject,
        ask: Elicitor | None,
        client: str,
    ) -> types.CallToolResult:
        result: types.CallToolResult | None = None
        try:
            with run.call(tool.path, arguments) as call:
                result = await self._forward(call, tool, ask, client)
                call.answer = to_answer(tool, result, _described, OPEN)[0].value
        except ToolfoldError as error:
            if result is None:
                reason = types.TextContent(type="text", text=str(error))
                result = types.CallToolResult(content=[reason], is_error=True)
        return result

    async def _forward(
        self, call: JournaledCall, tool: Tool, ask: Elicitor | None, client: str
    ) -> types.CallToolResult:
        privacy_border = PrivacyBorder(self._privacy)
        outgoing = await privacy_border.reveal(tool.server, tool.path, call.arguments)
        refuse_denied(self._rules, facts_of(tool), outgoing.arguments, client)
        call.reveal(tool.server, outgoing.kinds)
        async with privacy_border.errors(tool.server, outgoing):
            result = await self._catalog.forward(tool, outgoing.arguments, ask=ask)
        return await PassthroughBorder(privacy_border, tool.server, outgoing).result(result)


def _described(blob: Blob) -> Json:
    return {"mime_type": blob.mime_type, "bytes": blob.size_bytes}


def _text_of(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")
