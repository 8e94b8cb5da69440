"""Prompts and resources of the upstreams, passed through under names that say whose they are."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import mcp_types as types
from mcp import MCPError

from toolfold.app import App
from toolfold.errors import NotFound, ToolfoldError

ResultT = TypeVar("ResultT")

_MOST_SHOWN_CHARS: Final = 300


class Passthrough:
    """Answers what clients ask for beside tools."""

    def __init__(self, app: App) -> None:
        self._offered = app.catalog.offered

    def handlers(self) -> dict[str, Any]:
        """Return what answers each method.

        All of them, always: a relay may have declared them before any upstream was known, and what
        is known changes while clients are connected. An upstream that has none adds nothing.
        """
        return {
            "on_list_prompts": self.list_prompts,
            "on_get_prompt": self.get_prompt,
            "on_list_resources": self.list_resources,
            "on_list_resource_templates": self.list_templates,
            "on_read_resource": self.read_resource,
            "on_completion": self.complete,
        }

    async def list_prompts(self, _context: Any, _params: Any) -> types.ListPromptsResult:
        """Answer `prompts/list`, of the upstreams that are known."""
        await self._offered.settle()
        return types.ListPromptsResult(prompts=self._offered.prompts())

    async def list_resources(self, _context: Any, _params: Any) -> types.ListResourcesResult:
        """Answer `resources/list`, of the upstreams that are known."""
        await self._offered.settle()
        return types.ListResourcesResult(resources=self._offered.resources())

    async def list_templates(
        self, _context: Any, _params: Any
    ) -> types.ListResourceTemplatesResult:
        """Answer `resources/templates/list`, of the upstreams that are known."""
        await self._offered.settle()
        return types.ListResourceTemplatesResult(resource_templates=self._offered.templates())

    async def get_prompt(
        self, context: Any, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """Answer `prompts/get`."""
        return await _answered(
            lambda: context.lifespan_context.attend(
                context,
                params,
                lambda ask, _progress: self._offered.prompt(params.name, params.arguments, ask=ask),
            )
        )

    async def read_resource(
        self, context: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        """Answer `resources/read`."""
        return await _answered(
            lambda: context.lifespan_context.attend(
                context,
                params,
                lambda ask, _progress: self._offered.read_address(str(params.uri), ask=ask),
            ),
            about={"uri": str(params.uri)[:_MOST_SHOWN_CHARS]},
        )

    async def complete(
        self, _context: Any, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Answer `completion/complete`."""
        return await _answered(lambda: self._offered.complete(params))


async def _answered(
    answer: Callable[[], Awaitable[ResultT]], *, about: dict[str, str] | None = None
) -> ResultT:
    """Return the answer; what we can say of a failure goes to the client as its error."""
    try:
        return await answer()
    except NotFound as error:
        raise MCPError(types.INVALID_PARAMS, str(error), about) from error
    except ToolfoldError as error:
        raise MCPError(types.INTERNAL_ERROR, str(error)) from error
