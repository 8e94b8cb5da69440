"""Prompts and resources of the upstreams, passed through under names that say whose they are."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeVar

import mcp_types as types
from anyio.abc import TaskGroup
from mcp import MCPError

from toolfold.app import App
from toolfold.catalog.offered import inner_uri
from toolfold.catalog.questions import Elicitor
from toolfold.catalog.watches import Tell
from toolfold.entrypoints.mcp.list_changes import ListKind
from toolfold.errors import NotFound, ToolfoldError
from toolfold.execution.access import (
    Access,
    Completion,
    PromptText,
    ResourceContents,
    ResourceSubscription,
)
from toolfold.journal.runs import Origin
from toolfold.relay.wire import key_of

ResultT = TypeVar("ResultT")
ItemT = TypeVar("ItemT", types.Prompt, types.Resource, types.ResourceTemplate)

_MAX_SHOWN_CHARS: Final = 300


PASSED_THROUGH: Final = {
    "on_list_prompts": "list_prompts",
    "on_get_prompt": "get_prompt",
    "on_list_resources": "list_resources",
    "on_list_resource_templates": "list_templates",
    "on_read_resource": "read_resource",
    "on_completion": "complete",
}
"""By the handler of a method, what answers it.

All of them, always: a relay may have declared them before any upstream was known, and what is known
changes while clients are connected. An upstream that has none adds nothing."""


class Passthrough:
    """Answers what clients ask for beside tools; `client_of` tells whose call it is."""

    def __init__(self, app: App, client_of: Callable[[Any], str]) -> None:
        self._app = app
        self._client_of = client_of
        self._offered = app.catalog.offered

    def offers(self) -> dict[ListKind, object]:
        """Return by the kind of list what there is now, to be compared."""
        offered = self._offered
        return {
            "prompts": offered.prompts(),
            "resources": (offered.resources(), offered.templates()),
        }

    async def list_prompts(self, context: Any, _params: Any) -> types.ListPromptsResult:
        """Answer `prompts/list`, of the upstreams that are known."""
        await self._offered.settle()
        prompts = ((each.name.partition("__")[0], each) for each in self._offered.prompts())
        listed = await _answered(lambda: self._listed(context, "prompts.get", prompts))
        return types.ListPromptsResult(prompts=listed)

    async def list_resources(self, context: Any, _params: Any) -> types.ListResourcesResult:
        """Answer `resources/list`, of the upstreams that are known."""
        await self._offered.settle()
        resources = ((_module(each.uri), each) for each in self._offered.resources())
        listed = await _answered(lambda: self._listed(context, "resources.read", resources))
        return types.ListResourcesResult(resources=listed)

    async def list_templates(self, context: Any, _params: Any) -> types.ListResourceTemplatesResult:
        """Answer `resources/templates/list`, of the upstreams that are known."""
        await self._offered.settle()
        templates = ((_module(each.uri_template), each) for each in self._offered.templates())
        listed = await _answered(lambda: self._listed(context, "resources.read", templates))
        return types.ListResourceTemplatesResult(resource_templates=listed)

    async def get_prompt(
        self, context: Any, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """Answer `prompts/get`."""
        return await _answered(
            lambda: context.lifespan_context.attend(
                context,
                params,
                lambda ask, _progress: self._prompt(self._origin(context), params, ask),
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
                lambda ask, _progress: self._resource(self._origin(context), str(params.uri), ask),
            ),
            about={"uri": str(params.uri)[:_MAX_SHOWN_CHARS]},
        )

    async def watch(self, context: Any, address: str, tasks: TaskGroup, tell: Tell) -> None:
        """Have `tell` called whenever a resource may have changed, as long as `tasks` last."""
        access = ResourceSubscription(self._app.reach, address, tasks, tell)
        about = {"uri": address[:_MAX_SHOWN_CHARS]}
        await _answered(lambda: self._single(access, self._origin(context), None), about=about)

    async def complete(
        self, context: Any, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Answer `completion/complete`."""
        access = Completion(self._app.reach, params)
        return await _answered(lambda: self._single(access, self._origin(context), None))

    async def _prompt(
        self, origin: Origin, params: types.GetPromptRequestParams, ask: Elicitor | None
    ) -> types.GetPromptResult:
        access = PromptText(self._app.reach, params.name, params.arguments)
        return await self._single(access, origin, ask)

    async def _resource(
        self, origin: Origin, address: str, ask: Elicitor | None
    ) -> types.ReadResourceResult:
        return await self._single(ResourceContents(self._app.reach, address), origin, ask)

    async def _single(
        self, access: Access[ResultT], origin: Origin, ask: Elicitor | None
    ) -> ResultT:
        code = f"# The client asked for {access.name}."
        return await self._app.border.single(access, origin, "mcp", code=code, ask=ask)

    async def _listed(
        self, context: Any, verb: str, items: Iterable[tuple[str, ItemT]]
    ) -> list[ItemT]:
        """Return what may be listed, as it may be seen; each comes with its module."""
        listing = self._app.border.listing(self._origin(context), "mcp", verb)
        servers = self._app.catalog.servers
        found = [await listing.item(servers, module, item) for module, item in items]
        return [item for item in found if item is not None]

    def _origin(self, context: Any) -> Origin:
        config = self._app.config
        return Origin(
            client=self._client_of(context),
            request=key_of(context.request_id),
            project=str(config.project or config.start_directory),
        )


def _module(address: str) -> str:
    return (inner_uri(str(address)) or ("", ""))[0]


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
