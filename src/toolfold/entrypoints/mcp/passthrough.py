"""Prompts and resources of the upstreams, passed through under names that say whose they are."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import mcp_types as types
from mcp import MCPError

from toolfold.app import App
from toolfold.catalog.addresses import inner_uri
from toolfold.catalog.questions import Elicitor
from toolfold.errors import NotFound, ToolfoldError
from toolfold.execution.trust.guard import facts_of_offer, refuse_denied
from toolfold.execution.trust.passthrough import PassthroughBorder
from toolfold.execution.trust.privacy_border import OutgoingArguments, PrivacyBorder
from toolfold.journal.runs import Origin
from toolfold.jsontypes import JsonObject
from toolfold.relay.wire import key_of

ResultT = TypeVar("ResultT")

_MAX_SHOWN_CHARS: Final = 300


class Passthrough:
    """Answers what clients ask for beside tools; `client_of` tells whose call it is."""

    def __init__(self, app: App, client_of: Callable[[Any], str]) -> None:
        self._app = app
        self._client_of = client_of
        self._rules = app.rules
        self._offered = app.catalog.offered
        self._catalog = app.catalog
        self._privacy = app.privacy

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
        resources = self._offered.resources()
        listed = await _answered(lambda: self._listed(resources))
        return types.ListResourcesResult(resources=listed)

    async def list_templates(
        self, _context: Any, _params: Any
    ) -> types.ListResourceTemplatesResult:
        """Answer `resources/templates/list`, of the upstreams that are known."""
        await self._offered.settle()
        templates = self._offered.templates()
        return types.ListResourceTemplatesResult(resource_templates=templates)

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

    async def complete(
        self, _context: Any, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Answer `completion/complete`."""
        return await _answered(lambda: self._completion(params))

    async def _listed(self, resources: list[types.Resource]) -> list[types.Resource]:
        privacy_border = PrivacyBorder(self._privacy)
        return [
            await PassthroughBorder(privacy_border, self._server_of(each.uri)).item(each)
            for each in resources
        ]

    async def _prompt(
        self, origin: Origin, params: types.GetPromptRequestParams, ask: Elicitor | None
    ) -> types.GetPromptResult:
        name, arguments = params.name, params.arguments
        server = self._server(name.partition("__")[0])
        privacy_border = PrivacyBorder(self._privacy)
        asked: JsonObject = dict(arguments or {})
        outgoing = await privacy_border.reveal(server, name, asked)
        facts = facts_of_offer(self._catalog.servers, server, "prompts.get")
        refuse_denied(self._rules, facts, outgoing.arguments, origin.client)
        given = {key: str(value) for key, value in outgoing.arguments.items()}
        with self._written_down(origin, name, asked, server, outgoing):
            async with privacy_border.errors(server, outgoing):
                result = await self._offered.prompt(name, given or arguments, ask=ask)
        return await PassthroughBorder(privacy_border, server, outgoing).prompt(result)

    async def _resource(
        self, origin: Origin, address: str, ask: Elicitor | None
    ) -> types.ReadResourceResult:
        server = self._server_of(address)
        privacy_border = PrivacyBorder(self._privacy)
        asked: JsonObject = {"uri": address}
        outgoing = await privacy_border.reveal(server, "resources/read", asked)
        module, uri = inner_uri(str(outgoing.arguments["uri"])) or ("", "")
        facts = facts_of_offer(self._catalog.servers, server)
        refuse_denied(self._rules, facts, {"server": module, "uri": uri}, origin.client)
        with self._written_down(origin, "resources/read", asked, server, outgoing):
            async with privacy_border.errors(server, outgoing):
                result = await self._offered.read_address(str(outgoing.arguments["uri"]), ask=ask)
        return await PassthroughBorder(privacy_border, server, outgoing).contents(result)

    async def _completion(self, params: types.CompleteRequestParams) -> types.CompleteResult:
        ref = params.ref
        if isinstance(ref, types.PromptReference):
            server = self._server(ref.name.partition("__")[0])
        else:
            server = self._server_of(ref.uri)
        privacy_border = PrivacyBorder(self._privacy)
        outgoing = await privacy_border.reveal(server, "completion/complete", {})
        async with privacy_border.errors(server, outgoing):
            result = await self._offered.complete(params)
        return await PassthroughBorder(privacy_border, server, outgoing).completion(result)

    @contextmanager
    def _written_down(
        self, origin: Origin, what: str, asked: JsonObject, server: str, outgoing: OutgoingArguments
    ) -> Iterator[None]:
        """Have the journal tell of a request that shows a server personal data."""
        if not outgoing.kinds:
            yield
            return
        trouble: ToolfoldError | None = None
        code = f"# The client asked for {what}."
        with self._app.shared.journal.begin(origin, code, kind="direct") as run:
            try:
                with run.call(what, asked) as call:
                    call.reveal(server, outgoing.kinds)
                    yield
            except ToolfoldError as error:
                trouble = error
            run.end(failure="error" if trouble else None, reply=str(trouble or ""))
        if trouble:
            raise trouble

    def _origin(self, context: Any) -> Origin:
        config = self._app.config
        return Origin(
            client=self._client_of(context),
            request=key_of(context.request_id),
            project=str(config.project or config.start_directory),
        )

    def _server(self, module: str) -> str:
        return self._catalog.servers.get(module, module)

    def _server_of(self, address: str) -> str:
        inner = inner_uri(str(address))
        return self._server(inner[0]) if inner else ""


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
