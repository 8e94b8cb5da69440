"""What can be done at the border: call a tool, read a resource, get a prompt, complete, a verb.

Each says how it is bound, sent and concealed, in the form that its door wants. What is the same for
all is in `border.py`.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, ClassVar, Final, Generic, TypeVar

import mcp_types as types
from anyio.abc import TaskGroup

from toolfold.catalog.binding import bind
from toolfold.catalog.catalog import Catalog
from toolfold.catalog.offered import inner_uri
from toolfold.catalog.results import to_answer
from toolfold.catalog.sending import Sender
from toolfold.catalog.textrules import OPEN
from toolfold.catalog.tool import Answer, ArtifactSink, Blob, Tool
from toolfold.catalog.upstream import OnWait
from toolfold.catalog.upstream_request import CallListener
from toolfold.catalog.validation import Schemas
from toolfold.catalog.watches import Tell
from toolfold.execution.context import CallContext
from toolfold.execution.trust.guard import facts_of, facts_of_offer
from toolfold.execution.trust.passthrough import PassthroughBorder
from toolfold.execution.trust.pinned_definitions import definition_of
from toolfold.execution.trust.privacy_border import OutgoingArguments, PrivacyBorder
from toolfold.execution.trust.stand_ins import stand_in
from toolfold.jsontypes import Json, JsonObject
from toolfold.policy.decide import ToolFacts

T = TypeVar("T")

_LONG: Final = 1 << 20  # of what nobody has measured
_KEPT_CHARS: Final = 65_536


class Access(Generic[T]):
    """One effect on an upstream or on a store of ours."""

    __slots__ = ("facts", "given", "name", "server", "size")
    has_schema: ClassVar[bool] = False

    def __init__(self, name: str, server: str, facts: ToolFacts, given: JsonObject) -> None:
        self.name = name
        """As the journal has it."""
        self.server = server
        self.facts = facts
        """What rules know of it."""
        self.given = given
        self.size = _LONG
        """About how many characters the answer has."""

    def bind(self) -> JsonObject:
        """Return the arguments as they are meant. Raises BadCall if they cannot be."""
        return self.given

    async def check(self, sent: JsonObject) -> None:
        """Raise BadCall if what is about to be sent does not fit."""

    async def send(self, sent: OutgoingArguments, context: CallContext, origin: str) -> T:
        """Do it."""
        raise NotImplementedError

    async def conceal(self, answer: T, privacy_border: PrivacyBorder, sent: OutgoingArguments) -> T:
        """Return the answer as it may be seen."""
        raise NotImplementedError

    def value(self, answer: T) -> Any:
        """Return the answer as the journal has it. Raises ToolFailed if it says that it failed."""
        return answer

    def restored(self, value: Any) -> T:
        """Return the answer that an earlier attempt had, from what the journal has of it."""
        restored: T = value
        return restored

    def stand_in(self) -> T:
        """Return what stands for the answer in a dry run."""
        raise NotImplementedError


class ToolCall(Access[Json]):
    """A tool, answered with a value."""

    __slots__ = (
        "_args", "_keep", "_listener", "_on_wait", "_reach", "_settle", "_tool", "_turn", "amend",
        "is_observed",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913  # all that a call has to do with
        self,
        reach: "Reach",
        tool: Tool,
        args: tuple[Json, ...],
        kwargs: JsonObject,
        *,
        keep: ArtifactSink,
        settle: Callable[[], Awaitable[None]],
        on_wait: OnWait = lambda _why, _seconds: None,
        turn: Callable[[], AbstractAsyncContextManager[None]] | None = None,
        listener: CallListener | None = None,
    ) -> None:
        super().__init__(tool.path, tool.server, reach.facts_of(tool), kwargs)
        self._listener = listener
        self.amend: Callable[[Tool, JsonObject], JsonObject] | None = None
        """Changes arguments that are bound, or refuses the call."""
        self.is_observed = True
        """Whether the shape of the answer is learned."""
        self._reach = reach
        self._tool = tool
        self._args = args
        self._keep = keep
        self._settle = settle
        self._on_wait = on_wait
        self._turn = turn

    def bind(self) -> JsonObject:
        """Fit the values to the parameters."""
        arguments = bind(self._tool, self._args, self.given)
        return self.amend(self._tool, arguments) if self.amend else arguments

    async def check(self, sent: JsonObject) -> None:
        """Check the values by the tool's schema."""
        if not self._tool.is_built_in:  # which check for themselves
            await self._reach.schemas.check(self._tool, sent)

    async def send(self, sent: OutgoingArguments, context: CallContext, origin: str) -> Json:
        """Call the tool; what is no value is kept."""
        server, keep, listener = self.server, self._keep, self._listener
        if context.taint.is_on:
            keep = context.taint.keep(server, origin, keep)
        if context.privacy.is_on:
            keep = context.privacy.keep(server, keep, sent)
            listener = listener and self._concealing(listener, context.privacy)
        call = partial(
            self._reach.sender.call,
            self._tool,
            sent.arguments,
            keep=keep,
            on_wait=self._on_wait,
            ask=context.ask,
            listener=listener,
        )
        if self._turn is None:
            answer = await call()
        else:
            async with self._turn():
                answer = await call()
        await self._settle()
        self.size = answer.size
        return answer.value

    def _concealing(self, listener: CallListener, privacy_border: PrivacyBorder) -> CallListener:
        """Have what the server says of its progress heard as it may be seen."""
        if not privacy_border.covers(self.server):
            return listener

        async def hear(done: float, total: float | None, note: str) -> None:
            shown = await privacy_border.conceal(self.server, note, len(note)) if note else ""
            await listener.hear(done, total, str(shown))

        return CallListener(hear, listener.held)

    async def conceal(
        self, answer: Json, privacy_border: PrivacyBorder, sent: OutgoingArguments
    ) -> Json:
        """Conceal the value, and learn its shape."""
        if privacy_border.is_on:
            answer = await privacy_border.conceal(self.server, answer, self.size, sent=sent)
        if self.is_observed:
            self._reach.catalog.observe(self._tool, Answer(answer, self.size))
        return answer

    def stand_in(self) -> Json:
        """Return what fits the tool's output schema."""
        value: Json = stand_in(self._tool.listed)
        return value

    @property
    def has_schema(self) -> bool:  # type: ignore[override]
        """Whether it is known what the tool returns."""
        return bool(self._tool.listed.output_schema or self._tool.listed.returned)


class ForwardedCall(Access[types.CallToolResult]):
    """A tool, called by a client that knows its schema; the result passes as it is."""

    __slots__ = ("_reach", "_tool", "result")

    def __init__(self, reach: "Reach", tool: Tool, arguments: JsonObject) -> None:
        super().__init__(tool.path, tool.server, reach.facts_of(tool), arguments)
        self._reach = reach
        self._tool = tool
        self.result: types.CallToolResult | None = None
        """What the server answered, also if that is a failure."""

    async def check(self, sent: JsonObject) -> None:
        """Check the values by the tool's schema."""
        if not self._tool.is_built_in:
            await self._reach.schemas.check(self._tool, sent)

    async def send(
        self, sent: OutgoingArguments, context: CallContext, _origin: str
    ) -> types.CallToolResult:
        """Call the tool."""
        return await self._reach.sender.forward(self._tool, sent.arguments, ask=context.ask)

    async def conceal(
        self, answer: types.CallToolResult, privacy_border: PrivacyBorder, sent: OutgoingArguments
    ) -> types.CallToolResult:
        """Conceal every block."""
        self.result = await PassthroughBorder(privacy_border, self.server, sent).result(answer)
        return self.result

    def value(self, answer: types.CallToolResult) -> Any:
        """Return the result as guest code would have it."""
        return to_answer(self._tool, answer, _described, OPEN)[0].value


class ResourceValue(Access[Json]):
    """A resource, read by guest code: text as it is, and for what is binary a reference."""

    __slots__ = ("_keep", "_reach", "_settle")

    def __init__(
        self, reach: "Reach", name: str, asked: JsonObject, *, keep: ArtifactSink,
        settle: Callable[[], Awaitable[None]],
    ) -> None:  # fmt: skip
        named = str(asked["server"])
        server = reach.catalog.servers.get(named, named)
        super().__init__(name, server, facts_of_offer(reach.catalog.servers, server), asked)
        self._reach = reach
        self._keep = keep
        self._settle = settle

    async def send(self, sent: OutgoingArguments, context: CallContext, origin: str) -> Json:
        """Read it."""
        keep = context.taint.keep(self.server, origin, self._keep)
        keep = context.privacy.keep(self.server, keep, sent)
        server, uri = str(sent.arguments["server"]), str(sent.arguments["uri"])
        result = await self._reach.sender.read(server, uri, ask=context.ask)
        values = [_contents(each, keep.blob) for each in result.contents]
        await self._settle()
        return values[0] if len(values) == 1 else values

    async def conceal(
        self, answer: Json, privacy_border: PrivacyBorder, sent: OutgoingArguments
    ) -> Json:
        """Conceal what it holds."""
        return await privacy_border.conceal(self.server, answer, _LONG, sent=sent)

    def stand_in(self) -> Json:
        """Return nothing."""
        return {}


class _ClientResource(Access[T]):
    """A resource, by the address that clients have."""

    __slots__ = ("_address", "_reach")

    def __init__(self, reach: "Reach", address: str) -> None:
        module, uri = inner_uri(address) or ("", "")
        server = reach.catalog.servers.get(module, module)
        facts = facts_of_offer(reach.catalog.servers, server)
        super().__init__(facts.name, server, facts, {"server": module, "uri": uri})
        self._reach = reach
        self._address = address

    def bind(self) -> JsonObject:
        """Return which resource of which server it is."""
        self._reach.catalog.offered.inner(self._address)
        return self.given


class ResourceSubscription(_ClientResource[None]):
    """A resource that a client wants to hear of as long as a group of tasks lasts."""

    __slots__ = ("_tasks", "_tell")

    def __init__(self, reach: "Reach", address: str, tasks: TaskGroup, tell: Tell) -> None:
        super().__init__(reach, address)
        self.name = self.name.removesuffix("read") + "subscribe"
        self._tasks = tasks
        self._tell = tell

    async def send(self, sent: OutgoingArguments, _context: CallContext, _origin: str) -> None:
        """Begin to watch it."""
        module, uri = str(sent.arguments["server"]), str(sent.arguments["uri"])
        await self._tasks.start(self._reach.sender.watch, module, uri, self._tell)

    async def conceal(
        self, _answer: None, _privacy_border: PrivacyBorder, _sent: OutgoingArguments
    ) -> None:
        """Return nothing: only that it changed is told."""


class ResourceContents(_ClientResource[types.ReadResourceResult]):
    """A resource, read by a client."""

    __slots__ = ()

    async def send(
        self, sent: OutgoingArguments, context: CallContext, _origin: str
    ) -> types.ReadResourceResult:
        """Read it, under the address that clients use."""
        module, uri = str(sent.arguments["server"]), str(sent.arguments["uri"])
        return await self._reach.sender.read_outward(module, uri, ask=context.ask)

    async def conceal(
        self,
        answer: types.ReadResourceResult,
        privacy_border: PrivacyBorder,
        sent: OutgoingArguments,
    ) -> types.ReadResourceResult:
        """Conceal what it holds."""
        return await PassthroughBorder(privacy_border, self.server, sent).contents(answer)

    def value(self, answer: types.ReadResourceResult) -> Any:
        """Return its texts."""
        return [_contents(each, _described) for each in answer.contents]


class PromptText(Access[types.GetPromptResult]):
    """A prompt, for a client."""

    __slots__ = ("_prompt", "_reach")

    def __init__(self, reach: "Reach", prompt: str, arguments: Mapping[str, str] | None) -> None:
        module = prompt.partition("__")[0]
        server = reach.catalog.servers.get(module, module)
        facts = facts_of_offer(reach.catalog.servers, server, "prompts.get")
        super().__init__(facts.name, server, facts, dict(arguments or {}))
        self._reach = reach
        self._prompt = prompt

    async def send(
        self, sent: OutgoingArguments, context: CallContext, _origin: str
    ) -> types.GetPromptResult:
        """Get it."""
        given = {key: str(value) for key, value in sent.arguments.items()}
        return await self._reach.sender.prompt(self._prompt, given or None, ask=context.ask)

    async def conceal(
        self, answer: types.GetPromptResult, privacy_border: PrivacyBorder, sent: OutgoingArguments
    ) -> types.GetPromptResult:
        """Conceal every message."""
        return await PassthroughBorder(privacy_border, self.server, sent).prompt(answer)

    def value(self, answer: types.GetPromptResult) -> Any:
        """Return its messages."""
        return answer.model_dump(mode="json", include={"description", "messages"})


class Completion(Access[types.CompleteResult]):
    """What may complete an argument, for a client."""

    __slots__ = ("_params", "_reach")

    def __init__(self, reach: "Reach", params: types.CompleteRequestParams) -> None:
        ref = params.ref
        if isinstance(ref, types.PromptReference):
            module = ref.name.partition("__")[0]
        else:
            module = (inner_uri(str(ref.uri)) or ("", ""))[0]
        server = reach.catalog.servers.get(module, module)
        facts = facts_of_offer(reach.catalog.servers, server, "completion.complete")
        context = params.context.arguments if params.context else None
        given: JsonObject = {"argument": params.argument.name, "value": params.argument.value}
        others: JsonObject = {"context": dict(context)} if context else {}
        super().__init__(facts.name, server, facts, given | others)
        self._reach = reach
        self._params = params

    async def send(
        self, sent: OutgoingArguments, _context: CallContext, _origin: str
    ) -> types.CompleteResult:
        """Ask the server."""
        params = self._params
        given: Any = sent.arguments
        argument = params.argument.model_copy(update={"value": str(given["value"])})
        changes: dict[str, Any] = {"argument": argument}
        if params.context and given.get("context"):
            changes["context"] = params.context.model_copy(update={"arguments": given["context"]})
        return await self._reach.sender.complete(params.model_copy(update=changes))

    async def conceal(
        self, answer: types.CompleteResult, privacy_border: PrivacyBorder, sent: OutgoingArguments
    ) -> types.CompleteResult:
        """Conceal the values."""
        return await PassthroughBorder(privacy_border, self.server, sent).completion(answer)

    def value(self, answer: types.CompleteResult) -> Any:
        """Return the values."""
        return list(answer.completion.values)


class VerbAccess(Access[Any]):
    """What is built in, answered as our own service does it."""

    __slots__ = ("_form", "_kept", "_options", "_path", "_reach")

    def __init__(
        self,
        reach: "Reach",
        path: str,
        arguments: JsonObject,
        *,
        form: Callable[[Any], Any],
        kept: Callable[[Any], Any] = lambda answer: answer,
        **options: Any,
    ) -> None:
        """`form` makes of the answer what the caller gets, and `kept` of that what is journaled."""
        tool = reach.built_in(path)
        super().__init__(tool.path, tool.server, reach.facts_of(tool), arguments)
        self._reach = reach
        self._path = path
        self._form = form
        self._kept = kept
        self._options = options

    async def send(self, sent: OutgoingArguments, _context: CallContext, _origin: str) -> Any:
        """Do it."""
        answer = await self._reach.sender.verb(self._path, sent.arguments, **self._options)
        return self._form(answer)

    async def conceal(
        self, answer: Any, _privacy_border: PrivacyBorder, _sent: OutgoingArguments
    ) -> Any:
        """Return the answer: what is built in holds placeholders already."""
        return answer

    def value(self, answer: Any) -> Any:
        """Return the answer; of a long text, its head."""
        return answer[:_KEPT_CHARS] if isinstance(answer, str) else self._kept(answer)


class Reach:
    """What accesses need of the other side. Doors make accesses with it, and cannot send."""

    def __init__(self, catalog: Catalog, sender: Sender) -> None:
        self.catalog = catalog
        self.sender = sender
        self.schemas = Schemas()
        self._facts: dict[str, tuple[Tool, ToolFacts]] = {}
        self._own: tuple[list[Tool], dict[str, Tool]] = [], {}

    def built_in(self, path: str) -> Tool:
        """Return what is built in, by its own path: `memory.store`, whatever servers are called."""
        tools = self.catalog.tools
        if self._own[0] is not tools:
            self._own = tools, {each.own_path: each for each in tools if each.is_built_in}
        return self._own[1][path]

    def facts_of(self, tool: Tool) -> ToolFacts:
        """Return what rules can know of a tool, made once."""
        path = tool.path
        known = self._facts.get(path)
        if known is None or known[0] is not tool:
            facts = facts_of(tool)._replace(definition=definition_of(tool))
            known = self._facts[path] = tool, facts
        return known[1]


def _contents(
    contents: types.TextResourceContents | types.BlobResourceContents, keep: Callable[[Blob], Json]
) -> Json:
    if isinstance(contents, types.TextResourceContents):
        return contents.text
    mime_type = contents.mime_type or "application/octet-stream"
    return keep(Blob(mime_type=mime_type, base64=contents.blob))


def _described(blob: Blob) -> Json:
    return {"mime_type": blob.mime_type, "bytes": blob.size_bytes}
