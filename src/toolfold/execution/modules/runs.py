"""The module `runs` of guest code: runs that went on, or did not come to their end."""

import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

import anyio.to_thread

from toolfold.errors import BadCall, NotFound
from toolfold.execution.background import BackgroundRun, BackgroundRuns, BackgroundWork
from toolfold.execution.trust.approval_form import standing_text
from toolfold.execution.trust.approvals import Approvals
from toolfold.journal.journal import Journal
from toolfold.journal.runs import Origin, Run, state_of
from toolfold.jsontypes import Json, JsonObject
from toolfold.sandbox.sandbox import GuestCall, GuestModule

_MAX_WAIT_S: Final = 40.0
_SIGN_EVERY_S: Final = 10.0
_WAIT_S: Final = 30.0
_ID_CHARS: Final = 16

READ_ONLY: Final = frozenset({"runs.get", "runs.wait"})
"""The functions that change nothing."""

MODULE: Final = GuestModule(
    functions=("get", "resume", "stop", "wait"),
    stub="""\
from typing import Any, Awaitable
from ty_extensions import Intersection
def get(id: str, wait_s: float = 30) -> Intersection[dict[str, Any], Awaitable[dict[str, Any]]]: ...
def resume(id: str, wait_s: float = 30) -> Intersection[dict[str, Any], Awaitable[dict[str, Any]]]: ...
def stop(id: str) -> Intersection[dict[str, Any], Awaitable[dict[str, Any]]]: ...
def wait(id: str) -> Intersection[dict[str, Any], Awaitable[dict[str, Any]]]: ...
""",  # noqa: E501
)


@dataclass(frozen=True, slots=True)
class Waiter:
    """The run that makes a call of `runs`, as far as it may have to wait."""

    run_id: str = ""
    held: Callable[[], AbstractContextManager[None]] = nullcontext
    """Entered while it waits for another: its own time stands still."""
    show: Callable[[str], None] = lambda _note: None
    """Lets its client know that it waits."""


NOBODY: Final = Waiter()


class RunsModule:
    """Answers the calls to `runs.*`."""

    def __init__(
        self, background_runs: BackgroundRuns, journal: Journal, approvals: Approvals
    ) -> None:
        self._background_runs = background_runs
        self._journal = journal
        self._approvals = approvals
        self.resume: Callable[[Run, Origin], Awaitable[BackgroundWork]] | None = None
        """Set by the runtime, which is made of this."""

    async def call(self, call: GuestCall, origin: Origin, waiter: Waiter = NOBODY) -> Json:
        """Answer one call for whoever asked for the run that makes it.

        Raises:
            NotFound: There is no such function, or no such run that they may see.
            BadCall: The arguments do not fit.
        """
        name = call.function.removeprefix("runs.")
        if name not in MODULE.functions:
            raise NotFound(f"runs has {', '.join(MODULE.functions)}, not {call.function!r}.")
        run_id, wait_s = _arguments(call)
        try:
            run = self._journal.following(self._find(run_id, origin).id)
        except NotFound:
            background_runs = self._background_runs.find(run_id)
            if (
                background_runs is None
                or background_runs.client != origin.client
                or background_runs.over.is_set()
            ):
                raise
            return {"id": run_id, "state": "running", "text": "It is waiting for its session."}
        if name == "resume":
            return await self._resume(run, origin, wait_s)
        if name == "stop":
            return await self._stop(run)
        if name == "wait":
            await self._wait(run, waiter)
            wait_s = 0
        told = await self._get(run, wait_s)
        self._background_runs.told(run.id)
        return told

    def _find(self, run_id: str, origin: Origin) -> Run:
        unknown = NotFound(f"There is no run {run_id[:40]!r} of yours; a whole id has 16 digits.")
        if len(run_id) != _ID_CHARS:
            raise unknown  # of beginnings, others would be told too
        try:
            run = self._journal.find(run_id)
        except NotFound:
            raise unknown from None
        if not may_see(run, origin):
            raise unknown
        return run

    async def _wait(self, run: Run, waiter: Waiter) -> None:
        """Wait for the end of a run as long as the client does, which hears that it waits.

        A run that waits for its user is not waited for.
        """
        background_run = self._background_runs.find(run.id)
        if background_run is None or run.id == waiter.run_id:
            return
        with waiter.held(), self._background_runs.holding(waiter.run_id) as patience_s:
            until = anyio.current_time() + patience_s
            while not background_run.over.is_set() and anyio.current_time() < until:
                if await self._approval_text(run, is_going=True):
                    return
                waiter.show(f"runs.wait {run.id}")
                with anyio.move_on_after(min(_SIGN_EVERY_S, until - anyio.current_time())):
                    await background_run.over.wait()

    async def _get(self, run: Run, wait_s: float) -> Json:
        background_runs = self._background_runs.find(run.id)
        is_asked = bool(await self._approval_text(run, is_going=_is_going(background_runs)))
        if background_runs is not None and not is_asked:  # a person may take longer than this
            await self._background_runs.wait(background_runs, wait_s)
            run = self._journal.find(run.id)
        told = describe(run, background_runs)
        if text := await self._approval_text(run, is_going=_is_going(background_runs)):
            told["text"] = text
            if told["state"] == "running":
                told["state"] = "waiting"
        return told

    async def _approval_text(self, run: Run, *, is_going: bool) -> str:
        """Say what the user is asked about a run, or has decided; nothing if it waits for none."""
        state = state_of(run, is_under_way=is_going)
        if state not in {"waiting", "denied", "running"}:
            return ""
        approval = await anyio.to_thread.run_sync(self._approvals.latest_of, run.id)
        if approval is None or (state == "running" and approval.state != "pending"):
            return ""
        return standing_text(approval, now=time.time())

    async def _resume(self, run: Run, origin: Origin, wait_s: float) -> Json:
        background_runs = self._background_runs.find(run.id)
        if background_runs is not None and not background_runs.over.is_set():
            raise BadCall(
                f"The run {run.id} is under way still: runs.wait({run.id!r}) waits for it."
            )
        assert self.resume is not None  # noqa: S101
        resumed = await self._background_runs.start(origin.client, await self.resume(run, origin))
        resumed.is_left = True
        await self._background_runs.wait(resumed, wait_s)
        if not resumed.id:
            resumed.outcome()
        return describe(self._journal.find(resumed.id), resumed)

    async def _stop(self, run: Run) -> Json:
        background_runs = self._background_runs.find(run.id)
        if background_runs is None or background_runs.over.is_set():
            raise BadCall(f"The run {run.id} is not under way.")
        await self._background_runs.stop(background_runs)
        self._background_runs.told(run.id)
        return describe(self._journal.find(run.id), background_runs)


def describe(run: Run, background_runs: BackgroundRun | None) -> JsonObject:
    """Say how it stands with a run, as a model wants to know it."""
    told: JsonObject = {
        "id": run.id,
        "state": state_of(run, is_under_way=_is_going(background_runs)),
    }
    if run.progress:
        told["progress"] = {
            "done": run.progress.done,
            "total": run.progress.total,
            "note": run.progress.note,
        }
    told["calls"] = run.call_count
    if run.ending:
        told["text"] = run.ending.reply.head
    return told


def _is_going(background_runs: BackgroundRun | None) -> bool:
    return background_runs is not None and not background_runs.over.is_set()


def may_see(run: Run, origin: Origin) -> bool:
    """Whether a run is the asker's: their own, or of the same project where nobody has a key."""
    theirs, ours = run.origin, origin
    has_key = theirs.client.startswith("key:") or ours.client.startswith("key:")
    return theirs.client == ours.client or (not has_key and theirs.project == ours.project)


def _arguments(call: GuestCall) -> tuple[str, float]:
    given = dict(zip(("id", "wait_s"), call.args, strict=False)) | call.kwargs
    run_id, wait_s = given.pop("id", None), given.pop("wait_s", _WAIT_S)
    if given or not isinstance(run_id, str) or not run_id or isinstance(wait_s, bool):
        raise BadCall(f"{call.function} takes the id of a run, and how many seconds to wait.")
    if not isinstance(wait_s, int | float):
        raise BadCall(f"wait_s is a number of seconds, not {wait_s!r}.")
    return run_id, max(0.0, min(float(wait_s), _MAX_WAIT_S))
