"""The calls of one run: answered, counted, written down."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Final

import anyio
import anyio.lowlevel

from toolfold.catalog.answers import Answer, Blob
from toolfold.catalog.binding import bind
from toolfold.catalog.catalog import Catalog
from toolfold.catalog.questions import Elicitor
from toolfold.catalog.tool import Tool
from toolfold.errors import (
    BadCall,
    Denied,
    NeedsApproval,
    Rejected,
    RunError,
    ToolfoldError,
    UpstreamError,
)
from toolfold.execution.artifacts import RunArtifacts
from toolfold.execution.modules import cache as caching
from toolfold.execution.modules.cache import Cache, RunCache
from toolfold.execution.modules.runs import GET as GET_RUN
from toolfold.execution.modules.runs import RunsModule
from toolfold.execution.modules.skills import SAVE, with_source
from toolfold.execution.modules.tools import READ, RESOURCES, DiscoveryModule, read_arguments
from toolfold.execution.report import Tally
from toolfold.execution.trust.dry_run import DryRun
from toolfold.execution.trust.guard import CallGuard, facts_of, facts_of_offer
from toolfold.execution.trust.privacy_border import OutgoingArguments, PrivacyBorder
from toolfold.execution.trust.stand_ins import stand_in
from toolfold.execution.trust.taint import TaintTracker
from toolfold.journal.replay import Answered, Replay
from toolfold.journal.run_writer import JournaledCall, JournaledRun
from toolfold.journal.runs import Origin
from toolfold.jsontypes import Json
from toolfold.policy.decide import ToolFacts
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Answerers:
    """Who answers calls: the same for all runs."""

    catalog: Catalog
    discovery: DiscoveryModule
    runs: RunsModule
    cache: Cache


class Calls:
    """Answers the calls of one run, and keeps account of them."""

    def __init__(  # noqa: PLR0913  # all that calls have to do with
        self,
        answerers: Answerers,
        journaled: JournaledRun,
        on_progress: OnRunProgress,
        *,
        origin: Origin,
        artifacts: RunArtifacts,
        definition_of: Callable[[str], str | None],
        guard: CallGuard,
        privacy_border: PrivacyBorder,
        taint_tracker: TaintTracker,
        dry_run_log: DryRun | None = None,
        replay: Replay | None = None,
    ) -> None:
        self.tally = Tally()
        self.shown: list[Blob] = []
        self.ask: Elicitor | None = None
        self.files: Roots | None = None
        self.settle_files: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint
        self._catalog = answerers.catalog
        self._discovery = answerers.discovery
        self._journaled = journaled
        self._on_progress = on_progress
        self._runs = answerers.runs
        self._caching = RunCache(answerers.cache, may_keep=dry_run_log is None)
        self._origin = origin
        self._replay = replay
        self.guard = guard
        self.privacy_border = privacy_border
        self._taint_tracker = taint_tracker
        self.dry_run_log = dry_run_log
        guard.under_way = lambda: self._under_way
        guard.on_wait = lambda text: on_progress(self.tally.total, None, text)
        self._under_way = 0
        self._artifacts = artifacts
        self._definition_of = definition_of
        self._looking = anyio.Lock()
        self._has_own_progress = False
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
            return await self._runs.call(call, self._origin)
        if call.function == READ:
            return await self._counted(READ, call, self._read)
        if call.function.startswith("tools."):
            value = await self._discovery.call(call, client=self._origin.client)
            return await self._listed(value) if call.function == RESOURCES else value
        tool = self._catalog.find(call.function)
        return await self._counted(tool.path, call, partial(self._heard_tool, tool))

    def _refuse_to_rehearse(self, call: GuestCall) -> None:
        """Refuse what does something with another run, in a dry run."""
        if self.dry_run_log is not None and call.function != GET_RUN:
            raise BadCall(f"{call.function} did nothing: this is a dry run. runs.get can be used.")

    async def _counted(
        self,
        path: str,
        call: GuestCall,
        answer: Callable[[GuestCall, JournaledCall], Awaitable[Json]],
    ) -> Json:
        """Answer what goes to a server; the client, the reply and the journal hear of it."""
        count = self.tally.begin(path)
        if not self._has_own_progress:
            self._on_progress(self.tally.total, None, f"{path} {count}")
        try:
            with self._journaled.call(path, call.kwargs) as journaled:
                value = await answer(call, journaled)
                journaled.answer = value
        except (NeedsApproval, Rejected):
            self.tally.take_back(path)
            raise
        except ToolfoldError:
            self.tally.fail(path)
            raise
        self.tally.complete(path)
        return value

    async def _heard_tool(self, tool: Tool, call: GuestCall, journaled: JournaledCall) -> Json:
        async with self._hearing(tool.server, journaled):
            return await self._call_tool(tool, call, journaled)

    @asynccontextmanager
    async def _hearing(self, server: str, journaled: JournaledCall) -> AsyncIterator[None]:
        """Follow what an untrusted server says of a failure, too."""
        try:
            yield
        except (BadCall, Denied):  # our own words
            raise
        except UpstreamError as error:
            await self._taint_tracker.learn(server, _origin(journaled), str(error), len(str(error)))
            raise

    async def _call_tool(self, tool: Tool, call: GuestCall, journaled: JournaledCall) -> Json:
        journaled.arguments = bind(tool, call.args, call.kwargs)
        if tool.is_built_in and tool.own_path == SAVE:
            journaled.arguments = with_source(journaled.arguments, self._definition_of)
        self._caching.check(tool)
        journaled.is_reading = tool.listed.read_only
        if (answered := self._replayed(journaled)) is not None:
            self.guard.note_replayed(tool.path)
            value: Json = answered.value
            await self._taint_tracker.learn(tool.server, _origin(journaled), value, _LONG)
            return value
        outgoing = await self.privacy_border.reveal(tool.server, tool.path, journaled.arguments)
        has_schema = bool(tool.listed.output_schema or tool.listed.returned)
        if not await self._admitted(facts_of(tool), journaled, outgoing, has_schema=has_schema):
            stands_in: Json = stand_in(tool.listed)
            return stands_in
        journaled.reveal(tool.server, outgoing.kinds)
        journaled.send()
        self._under_way += 1
        try:
            return await self._answer(tool, outgoing, _origin(journaled))
        finally:
            self._under_way -= 1

    async def _answer(self, tool: Tool, outgoing: OutgoingArguments, origin: str) -> Json:
        keep = self._taint_tracker.keep(tool.server, origin, self._artifacts)
        keep = self.privacy_border.keep(tool.server, keep, outgoing)
        async with self.privacy_border.errors(tool.server, outgoing):
            async with self._turn_of(tool):
                answer = await self._catalog.call(
                    tool, outgoing.arguments, keep=keep, on_wait=self._note_wait, ask=self.ask
                )
            await self._artifacts.save_blobs()
        value = await self.privacy_border.conceal(
            tool.server, answer.value, answer.size, sent=outgoing
        )
        self._catalog.observe(tool, Answer(value, answer.size))
        await self._taint_tracker.learn(tool.server, origin, value, answer.size)
        return value

    async def _admitted(
        self,
        tool: ToolFacts,
        journaled: JournaledCall,
        outgoing: OutgoingArguments,
        *,
        has_schema: bool,
    ) -> bool:
        """Ask the policy; return whether the call is to be made, or is only rehearsed.

        Of a call that it does not let pass the journal says nothing was done.
        """
        given = journaled.arguments
        tainted = await self._taint_tracker.find(given)
        try:
            if self.dry_run_log is None:
                await self.guard.admit(
                    tool, given, journaled.position, sent=outgoing.arguments, tainted=tainted
                )
                return True
            is_asked = await self.guard.foresee(tool, outgoing.arguments, tainted=tainted)
        except (RunError, anyio.get_cancelled_exc_class()):
            journaled.is_replayed = True  # it has not happened, and may yet
            raise
        if tool.read_only and not is_asked:
            return True
        journaled.is_replayed = True  # as far as the journal goes: nothing was called
        self.dry_run_log.note(tool.name, given, is_asked=is_asked, has_schema=has_schema)
        return False

    @asynccontextmanager
    async def _turn_of(self, tool: Tool) -> AsyncIterator[None]:
        """Have calls that look at files find what the run wrote, one after the other.

        There are few turns for the files of all runs: one run must not have every one of them.
        """
        if not tool.is_built_in or not tool.own_path.startswith(f"{FILES}."):
            yield
            return
        async with self._looking:
            await self.settle_files()
            yield

    async def _read(self, call: GuestCall, journaled: JournaledCall) -> Json:
        journaled.arguments = read_arguments(call)
        journaled.is_reading = True
        if (answered := self._replayed(journaled)) is not None:
            value: Json = answered.value
            return value
        name = str(journaled.arguments["server"])
        server = self._catalog.servers.get(name, name)
        async with self._hearing(server, journaled):
            return await self._read_of(server, journaled)

    async def _read_of(self, server: str, journaled: JournaledCall) -> Json:
        outgoing = await self.privacy_border.reveal(server, READ, journaled.arguments)
        facts = facts_of_offer(self._catalog.servers, server)
        if not await self._admitted(facts, journaled, outgoing, has_schema=False):
            return {}
        journaled.reveal(server, outgoing.kinds)
        journaled.send()
        keep = self._taint_tracker.keep(server, _origin(journaled), self._artifacts)
        keep = self.privacy_border.keep(server, keep, outgoing)
        async with self.privacy_border.errors(server, outgoing):
            value = await self._discovery.read(outgoing.arguments, keep=keep.blob, ask=self.ask)
            await self._artifacts.save_blobs()
        value = await self.privacy_border.conceal(server, value, _LONG, sent=outgoing)
        await self._taint_tracker.learn(server, _origin(journaled), value, _LONG)
        return value

    async def _listed(self, entries: Json) -> Json:
        """Conceal what resources are called and described with."""
        if not isinstance(entries, list):
            return entries
        listed = []
        for entry in entries:
            if isinstance(entry, dict):
                server = self._catalog.servers[str(entry["server"])]
                listed.append(await self.privacy_border.conceal(server, entry, 0))
                words = [value for name, value in entry.items() if name != "server"]
                await self._taint_tracker.learn(server, RESOURCES, words, _LONG)
        return listed

    def _replayed(self, journaled: JournaledCall) -> Answered | None:
        """Return how an earlier attempt of this run had the call answered; None if it had not."""
        if self._replay is None:
            return None
        try:
            answered = self._replay.answer(
                journaled.position,
                journaled.tool,
                journaled.arguments,
                is_reading=journaled.is_reading,
            )
        except ToolfoldError:
            journaled.is_replayed = True
            raise
        journaled.is_replayed = answered is not None
        return answered

    async def _cached(self, call: GuestCall) -> Json:
        """Look up what `cached` has, or keep it. Written down: a resumed run must find the same."""
        if call.function == caching.PUT:
            return self._caching.put(call, await self._taint_tracker.origin_of(list(call.args[1:])))
        with self._journaled.call(caching.NAME, call.kwargs) as journaled:
            journaled.arguments = caching.arguments(call)
            if (answered := self._replayed(journaled)) is not None:
                self._caching.go_on(answered.value)
                found: Json = answered.value
            else:
                found = self._caching.get(journaled.arguments)
            journaled.answer = found
        match found:
            case [value, str() as origin]:
                await self._taint_tracker.learn_again(value, origin, _LONG)
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
        """What random numbers come from: the same when the run is gone on with."""
        return self._replay.first if self._replay else self._journaled.id

    def read_clock(self) -> float:
        """Return what time it is, or was in the attempt that is gone on with."""
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


def _origin(journaled: JournaledCall) -> str:
    return f"{journaled.tool} (call {journaled.position})"


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
