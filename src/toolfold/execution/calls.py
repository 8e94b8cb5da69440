"""The calls of one run: answered and counted; what goes to a server crosses the border."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Final

import anyio
import anyio.lowlevel

from toolfold.catalog.tool import Blob, Tool
from toolfold.catalog.upstream_request import CallListener
from toolfold.errors import BadCall, Denied, NeedsApproval, Rejected, ToolfoldError
from toolfold.execution.access import Access, Reach, ResourceValue, ToolCall
from toolfold.execution.artifacts import RunArtifacts
from toolfold.execution.border import Border, replayed
from toolfold.execution.context import CallContext
from toolfold.execution.modules import cache as caching
from toolfold.execution.modules.cache import Cache, RunCache
from toolfold.execution.modules.runs import READ_ONLY, RunsModule, Waiter
from toolfold.execution.modules.skills import SAVE, with_source
from toolfold.execution.modules.tools import READ, RESOURCES, DiscoveryModule, read_arguments
from toolfold.execution.report import Tally
from toolfold.execution.trust.guard import facts_of, facts_of_offer
from toolfold.jsontypes import Json, JsonObject
from toolfold.sandbox.sandbox import GuestCall
from toolfold.sandbox.trees import Roots
from toolfold.workspace.verbs import MODULE as FILES

OnRunProgress = Callable[[float, float | None, str], None]
"""Told of each call as it begins: how many there were, and which it is; or what guest code says of
its progress: how much is done, of how much, and a note."""

SHOW: Final = "show"
"""The function that shows an image to the model; it needs no import."""

PROGRESS: Final = "progress"
"""The function that says how far the code is; the same."""

_MAX_NOTE_CHARS: Final = 200
_LONG: Final = 1 << 20  # of what nobody has measured
_SIGN: Final = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Answerers:
    """Who answers calls: the same for all runs."""

    border: Border
    reach: Reach
    discovery: DiscoveryModule
    runs: RunsModule
    cache: Cache


class Calls:
    """Answers the calls of one run, and keeps account of them."""

    def __init__(  # all that calls have to do with
        self,
        answerers: Answerers,
        context: CallContext,
        on_progress: OnRunProgress,
        *,
        artifacts: RunArtifacts,
        definition_of: Callable[[str], str | None],
    ) -> None:
        self.tally = Tally()
        self.shown: list[Blob] = []
        self.context = context
        self.files: Roots | None = None
        self.settle_files: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint
        self._border = answerers.border
        self._reach = answerers.reach
        self._catalog = answerers.reach.catalog
        self._discovery = answerers.discovery
        self._journaled = context.run
        self._on_progress = on_progress
        self._runs = answerers.runs
        self._caching = RunCache(answerers.cache, may_keep=context.dry_run_log is None)
        self._replay = context.replay
        context.guard.on_wait = lambda text: on_progress(self.tally.total, None, text)
        self._artifacts = artifacts
        self._definition_of = definition_of
        self._looking = anyio.Lock()
        self._has_own_progress = False
        self._signs = 0.0
        self._waited_s: dict[str, float] = {}

    async def call(self, call: GuestCall) -> Json:
        """Answer one call of guest code."""
        match call.function:
            case "show":
                return await self._show(call)
            case "progress":
                return self._note_progress(call)
            case caching.GET | caching.PUT:
                return await self._cached(call)
        if call.function.startswith("runs."):
            self._refuse_to_rehearse(call)
            waiter = Waiter(self._journaled.id, self._held, self._show_sign)
            return await self._runs.call(call, self.context.origin, waiter)
        if call.function == READ:
            asked = read_arguments(call)
            keep, settle = self._artifacts, self._artifacts.save_blobs
            return await self._counted(
                ResourceValue(self._reach, READ, asked, keep=keep, settle=settle)
            )
        if call.function.startswith("tools."):
            value = await self._discovery.call(
                call,
                client=self.context.origin.client,
                asks=lambda tool: self.context.guard.asks(facts_of(tool)),
                look=None if self.context.dry_run_log is not None else self._look,
            )
            return await self._listed(value) if call.function == RESOURCES else value
        return await self._counted(self._tool_call(call))

    async def _look(self, tool: Tool, arguments: JsonObject) -> Json:
        """Make a call that the program did not ask for, where it is open: a run of its own.

        Raises:
            ToolfoldError: As `Border.single`; nothing was done where it is not open.
        """
        is_known = tool.server not in self._border.trust.privacy.untrusted
        if not is_known or not self.context.guard.is_open(self._reach.facts_of(tool)):
            raise Denied(f"{tool.path} is not called for `tools.describe`.")
        access = ToolCall(
            self._reach,
            tool,
            (),
            arguments,
            keep=self._artifacts,
            settle=self._artifacts.save_blobs,
        )
        access.is_observed = False  # what is asked for a line of our own is not usual
        code = f"tools.describe({tool.module!r})"
        return await self._border.single(access, self.context.origin, self.context.door, code=code)

    def _refuse_to_rehearse(self, call: GuestCall) -> None:
        """Refuse what does something with another run, in a dry run."""
        if self.context.dry_run_log is not None and call.function not in READ_ONLY:
            raise BadCall(f"{call.function} did nothing: this is a dry run. runs.get can be used.")

    async def _counted(self, access: Access[Json]) -> Json:
        """Do what goes to a server; the client, the reply and the journal hear of it."""
        path = access.name
        count = self.tally.begin(path)
        if not self._has_own_progress:
            self._on_progress(self.tally.total, None, f"{path} {count}")
        try:
            value = await self._border.cross(access, self.context)
        except (NeedsApproval, Rejected):
            self.tally.take_back(path)
            raise
        except ToolfoldError:
            self.tally.fail(path)
            raise
        self.tally.complete(path)
        return value

    def _tool_call(self, call: GuestCall) -> ToolCall:
        tool = self._catalog.find(call.function)
        is_file = tool.is_built_in and tool.own_path.startswith(f"{FILES}.")
        access = ToolCall(
            self._reach,
            tool,
            call.args,
            call.kwargs,
            keep=self._artifacts,
            settle=self._artifacts.save_blobs,
            on_wait=self._note_wait,
            turn=self._turn if is_file else None,
            listener=None
            if tool.is_built_in
            else CallListener(partial(self._hear, tool.path), self._held),
        )
        access.amend = self._amended
        return access

    async def _hear(self, path: str, done: float, total: float | None, note: str) -> None:
        """Tell the client what a server says of a call, unless the code says how far it is."""
        if not self._has_own_progress:
            self._show_sign(f"{path} {_share(done, total)}{note}".strip())

    def _show_sign(self, note: str) -> None:
        """Tell the client that something is at work; its count must grow with each notification."""
        self._signs = max(self._signs + _SIGN, self.tally.total)
        self._on_progress(self._signs, None, note)

    def _held(self) -> AbstractContextManager[None]:
        """Have the run's time stand still while a server is at work that says so."""
        clock = self.context.guard.clock
        return nullcontext() if clock is None else clock.paused()

    def _amended(self, tool: Tool, arguments: JsonObject) -> JsonObject:
        """Add what only this run knows; refuse what `cached` may not do."""
        self._caching.check(tool)
        is_save = tool.is_built_in and tool.own_path == SAVE
        if not is_save:
            return arguments
        amended = with_source(arguments, self._definition_of)
        if amended is not arguments:
            self.context.taint.note_written(str(amended["source"]))
        return amended

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Have calls that look at files find what the run wrote, one after the other.

        There are few turns for the files of all runs: one run must not have every one of them.
        """
        async with self._looking:
            await self.settle_files()
            yield

    async def _listed(self, entries: Json) -> Json:
        """Leave out what a rule denies; conceal what resources are called and described with."""
        if not isinstance(entries, list):
            return entries
        listed = []
        for entry in entries:
            if isinstance(entry, dict):
                server = self._catalog.servers[str(entry["server"])]
                facts = facts_of_offer(self._catalog.servers, server)
                if self._border.is_denied(facts, self.context.origin.client):
                    continue
                listed.append(await self.context.privacy.conceal(server, entry, 0))
                words = [value for name, value in entry.items() if name != "server"]
                await self.context.taint.learn(server, RESOURCES, words, _LONG)
        return listed

    async def _cached(self, call: GuestCall) -> Json:
        """Look up what `cached` has, or keep it. Written down: a resumed run must find the same."""
        if call.function == caching.PUT:
            return self._caching.put(call, await self.context.taint.origin_of(list(call.args[1:])))
        with self._journaled.call(caching.NAME, call.kwargs) as journaled:
            journaled.arguments = caching.arguments(call)
            answered = replayed(self._replay, journaled) if self._replay else None
            if answered is not None:
                self._caching.go_on(answered.value)
                found: Json = answered.value
            else:
                found = self._caching.get(journaled.arguments)
            journaled.answer = found
        match found:
            case [value, str() as origin]:
                await self.context.taint.learn_again(value, origin, _LONG)
        return found

    def _note_progress(self, call: GuestCall) -> Json:
        done, total, note = _progress(call)
        self._has_own_progress = True
        self._on_progress(done, total, note)
        self._journaled.progress(done, total, note)
        return None

    async def _show(self, call: GuestCall) -> Json:
        if len(call.args) != 1:
            raise BadCall("show() takes one image.")
        await self.settle_files()
        self.shown.append(await self._artifacts.image(call.args[0]))
        return None

    def _note_wait(self, why: str, seconds: float) -> None:
        self._waited_s[why] = self._waited_s.get(why, 0.0) + seconds

    @property
    def seed(self) -> str:
        """What random numbers come from: the same when the run is resumed."""
        return self._replay.first if self._replay else self._journaled.id

    def read_clock(self) -> float:
        """Return what time it is, or was in the attempt that is resumed."""
        if self._replay is None:
            return self._journaled.read_clock()
        return self._replay.read_clock(self._journaled.read_clock)

    @property
    def is_unused(self) -> bool:
        """Whether nothing was called, shown or written, so that the code may run once more."""
        has_written = self.files is not None and self.files.has_changed
        return not self.tally.total and not self.shown and not has_written

    @property
    def waits(self) -> tuple[str, ...]:
        """Why the run waited before calls, and how long in all."""
        return tuple(f"{why}: waited {total:.1f} s" for why, total in self._waited_s.items())


def _share(done: float, total: float | None) -> str:
    if total:
        return f"{done:g}/{total:g} "
    return f"{done:g} " if done else ""


def _progress(call: GuestCall) -> tuple[float, float | None, str]:
    given = dict(zip(("done", "total", "note"), call.args, strict=False)) | call.kwargs
    done, total, note = (given.pop(name, None) for name in ("done", "total", "note"))
    numbers = [value for value in (done, total) if value is not None]
    is_odd = given or len(call.args) > 3 or done is None
    if is_odd or not all(_is_number(value) for value in numbers):
        raise BadCall("progress takes done, and if you like total and note: two numbers, a text.")
    text = "" if note is None else str(note)[:_MAX_NOTE_CHARS]
    return float(str(done)), None if total is None else float(str(total)), text


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
