"""The border: every effect on an upstream or on a store of ours passes `Border.cross`.

Doors translate, and nothing else: they say what is to be done (an `Access`) and for whom (a
`CallContext`), and get what came of it in the form that they asked for.
"""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

import anyio

from toolfold.catalog.questions import Elicitor
from toolfold.errors import (
    BadCall,
    ConfigError,
    Denied,
    RunError,
    ToolfoldError,
    TooManyRequests,
    Unrecorded,
    UpstreamError,
    count,
)
from toolfold.execution.access import Access
from toolfold.execution.context import CallContext, Door
from toolfold.execution.trust.approvals import Approvals
from toolfold.execution.trust.asked_clients import AskedClients
from toolfold.execution.trust.guard import CallGuard, RunFacts, facts_of_offer
from toolfold.execution.trust.passthrough import ItemT, PassthroughBorder
from toolfold.execution.trust.preapproval import Preapproval, Preapprovals
from toolfold.execution.trust.privacy_border import OutgoingArguments, PrivacyBorder, PrivacyRules
from toolfold.execution.trust.taint import Literals, SessionTaints, Taint, TaintTracker
from toolfold.journal.journal import Journal
from toolfold.journal.replay import Answered, Replay
from toolfold.journal.run_writer import JournaledCall, JournaledRun
from toolfold.journal.runs import Origin, RunKind
from toolfold.policy.decide import Policy, ToolFacts, is_always_denied
from toolfold.policy.files import PolicyFiles
from toolfold.policy.rules import Action, Rule

T = TypeVar("T")

KINDS: Final[dict[Door, RunKind]] = {
    "code": "direct",  # what a listing shows of a server
    "mcp": "direct",
    "rest": "request",
    "memory": "direct",
    "script": "request",
    "hook": "request",
    "terminal": "request",
}
"""What the journal calls the run of a single access, by its door."""

_HELD_UP_S: Final = 2.0
_RETRY_S: Final = 0.05
_SILENT_S: Final = 3600.0
_MAX_TALKS: Final = 500
_LONG: Final = 1 << 20  # of what nobody has measured


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustServices:
    """Who says what may be done."""

    rules: PolicyFiles
    approvals: Approvals
    clients: AskedClients
    privacy: PrivacyRules
    scope: str
    """The namespace in which the user allows tools for good."""
    preapprovals: Preapprovals
    at_once: int = 16
    """How much the holder of a key may have under way at one time."""
    on_failure: str = "refuse"
    """What becomes of calls that change something while the journal cannot be written."""


class Border:
    """Lets through what may pass, as it may be seen, and writes it down."""

    def __init__(self, journal: Journal, trust: TrustServices) -> None:
        self._journal = journal
        self.trust = trust
        self.taints = SessionTaints(trust.privacy.untrusted)
        self._talks: OrderedDict[tuple[Door, str], _Talk] = OrderedDict()
        self._under_way: Counter[str] = Counter()

    async def cross(self, access: Access[T], context: CallContext) -> T:
        """Bind, reveal, validate, admit, write the intent, send, conceal, taint, write the call.

        Raises:
            BadCall: The arguments do not fit; nothing was sent.
            Denied: A rule forbids it, or the data may not go there; nothing was sent.
            NeedsApproval: The user must be asked, and cannot be now; nothing was sent.
            Rejected: The user does not want it; nothing was sent.
            Unrecorded: It cannot be written down, and changes something; nothing was sent.
            UpstreamError: The upstream failed.
        """
        with context.run.call(access.name, access.given) as call:
            call.is_reading = bool(access.facts.read_only)
            call.arguments = access.bind()
            origin = f"{access.name} (call {call.position})"
            if context.replay and (answered := replayed(context.replay, call)):
                context.guard.note_replayed(access.facts.name)
                answer = access.restored(answered.value)
            else:
                sent = OutgoingArguments(call.arguments)
                if context.privacy.is_on:
                    sent = await context.privacy.reveal(access.server, access.name, call.arguments)
                await access.check(sent.arguments)
                if not await _admitted(access, call, sent, context):
                    return access.stand_in()
                call.reveal(access.server, sent.kinds)
                if not call.send() and not call.is_reading:
                    await self._see_recorded(access.name, context)
                answer = await _sent(access, sent, context, origin)
            call.answer = access.value(answer)
            if context.taint.is_on:
                await context.taint.learn(access.server, origin, call.answer, access.size)
        return answer

    async def _see_recorded(self, name: str, context: CallContext) -> None:
        """Wait a moment for a record that others hold up; without one, change nothing.

        Raises:
            Unrecorded: It is not on disk, and the user did not say to go on all the same.
        """
        if self._journal.is_held_up:
            with anyio.move_on_after(_HELD_UP_S):
                while not context.run.catch_up():  # noqa: ASYNC110
                    await anyio.sleep(_RETRY_S)
                return
        if self.trust.on_failure == "continue":
            context.run.unrecorded += 1
            return
        raise Unrecorded(
            f"{name} was not called: it changes something, and the journal cannot be written "
            f"({self._journal.trouble}). Make room on the disk; See `toolfold doctor`."
        )

    async def single(  # noqa: PLR0913  # what is done, for whom, and who is told
        self,
        access: Access[T],
        origin: Origin,
        door: Door,
        *,
        code: str,
        run_id: str = "",
        ask: Elicitor | None = None,
        shown: Callable[[T], str] = lambda _answer: "",
        on_end: Callable[[JournaledRun], None] = lambda _run: None,
        on_note: Callable[[str], None] = lambda _note: None,
    ) -> T:
        """Do one thing for somebody who has no program: a run of one call, as `cross` does it.

        `on_note` is told what the caller shall know beside the answer.

        Raises:
            TooManyRequests: As `counted`.
            ToolfoldError: As `cross`.
        """
        answer: T | None = None
        trouble: ToolfoldError | None = None
        begun = partial(self._journal.begin, origin, code, kind=KINDS[door], run_id=run_id)
        with self.counted(origin), begun() as run:
            context = self._context(origin, door, run, ask)
            try:
                answer = await self.cross(access, context)
            except ToolfoldError as error:
                trouble = error
            for note in (*context.guard.notes, *unrecorded_notes(run)):
                on_note(note)
            reply = str(trouble) if trouble else shown(answer)  # type: ignore[arg-type]
            run.end(failure="error" if trouble else None, reply=reply)
            on_end(run)
        if trouble:
            raise trouble
        return answer  # type: ignore[return-value]

    @contextmanager
    def counted(self, origin: Origin) -> Iterator[None]:
        """Count what the holder of a key has under way: runs, and calls without one.

        Raises:
            TooManyRequests: It is too much; nothing was done.
        """
        if not origin.has_key:
            yield
            return
        if self._under_way[origin.client] >= self.trust.at_once:
            raise TooManyRequests(
                f"This key has {self.trust.at_once} runs and calls under way, which is as many as "
                "it may have at one time (`keys.at_once`). Wait for one to end, then try again."
            )
        self._under_way[origin.client] += 1
        try:
            yield
        finally:
            self._under_way[origin.client] -= 1

    def guard(
        self,
        policy: Policy,
        run: RunFacts,
        journaled: JournaledRun,
        preapproval: Preapproval | None = None,
    ) -> CallGuard:
        """Return what decides about the calls of a program, by the rules that hold now."""
        policy = preapproval.tightened(policy) if preapproval else policy
        guard = CallGuard(policy, self.trust.approvals, run, journaled.decide)
        guard.preapproval = preapproval
        guard.on_automatic_answer = partial(self.trust.clients.learn, run.origin.program)
        return guard

    def policy(self, client: str) -> Policy:
        """Return the rules for a client. Raises ConfigError where they cannot be read."""
        return self.trust.rules.policy(client)

    def policy_for(
        self, origin: Origin, ask: Elicitor | None, preapproval: Preapproval | None = None
    ) -> Policy:
        """Return the rules for who asks for a run, with what holds where nobody can be asked.

        Raises:
            ConfigError: They cannot be read.
        """
        is_asked = ask is not None and not self.trust.clients.answers_by_itself(origin.program)
        is_unasked = preapproval is not None and not preapproval.is_asked
        has_decided = origin.is_local_client and not is_asked and not is_unasked
        return self.trust.rules.policy(origin.client, has_decided=has_decided)

    def taint(
        self, origin: Origin, door: Door, *, literals: Literals | None = None
    ) -> TaintTracker:
        """Return what follows the words of untrusted upstreams for somebody without a program."""
        talk = self._talk(origin, door)
        return TaintTracker(talk.taint, self.taints.untrusted, literals=literals)

    def privacy(self) -> PrivacyBorder:
        """Return what conceals and reveals, for one run."""
        return PrivacyBorder(self.trust.privacy)

    def is_denied(self, facts: ToolFacts, client: str) -> bool:
        """Whether something can never be done for a client, so that it is not listed."""
        return is_always_denied(self._closed_or(client), facts)

    def listing(self, origin: Origin, door: Door, verb: str) -> "Listing":
        """Return what lets the items of one listing pass to somebody."""
        return Listing(self, origin, door, verb)

    def _context(
        self, origin: Origin, door: Door, run: JournaledRun, ask: Elicitor | None
    ) -> CallContext:
        facts = RunFacts(first=run.id, attempt=run.id, origin=origin, scope=self.trust.scope)
        policy = self._closed_or(origin.client, origin, ask)
        guard = CallGuard(
            policy,
            self.trust.approvals,
            facts,
            run.decide,
            counts=self._talk(origin, door).counts,
            may_wait=False,
        )
        guard.ask = ask
        if door == "terminal":
            guard.where_asked = "Repeat the command at a terminal, where you are asked."
        return CallContext(
            origin=origin,
            door=door,
            run=run,
            guard=guard,
            privacy=self.privacy(),
            taint=self.taint(origin, door, literals=frozenset if policy.is_careful else None),
            ask=ask,
        )

    def _closed_or(
        self, client: str, origin: Origin | None = None, ask: Elicitor | None = None
    ) -> Policy:
        """Return the rules for a client; where they cannot be read, one that denies everything."""
        try:
            return self.policy_for(origin, ask) if origin else self.policy(client)
        except ConfigError as error:
            return Policy((Rule(Action.DENY, origin=str(error)),))

    def _talk(self, origin: Origin, door: Door) -> "_Talk":
        # All hooks are one client, and each conversation of it somebody else.
        caller = origin.request if door == "hook" else origin.client
        key, now = (door, caller), time.monotonic()
        talk = self._talks.get(key)
        if talk is None or now - talk.heard_at > _SILENT_S:
            talk = self._talks[key] = _Talk()
        talk.heard_at = now
        self._talks.move_to_end(key)
        if len(self._talks) > _MAX_TALKS:
            self._talks.popitem(last=False)
        return talk


class Listing:
    """Lets through what is listed of prompts and resources, without what can never be had."""

    def __init__(self, border: Border, origin: Origin, door: Door, verb: str) -> None:
        self._border = border
        self._client = origin.client
        self._verb = verb
        self._privacy_border = border.privacy()
        self._taint_tracker = border.taint(origin, door)
        self._denied: dict[str, bool] = {}

    async def item(self, servers: Mapping[str, str], module: str, item: ItemT) -> ItemT | None:
        """Return an item as it may be seen; None where a rule denies it."""
        server = servers.get(module, module)
        if server not in self._denied:
            facts = facts_of_offer(servers, server, self._verb)
            self._denied[server] = self._border.is_denied(facts, self._client)
        if self._denied[server]:
            return None
        shown = await PassthroughBorder(self._privacy_border, server).item(item)
        words = shown.model_dump(mode="json", exclude_none=True)
        await self._taint_tracker.learn(server, f"{module}.{self._verb}", words, _LONG)
        return shown


@dataclass(slots=True)
class _Talk:
    """What counts together for somebody without a program, until they are silent for an hour."""

    counts: Counter[str] = field(default_factory=Counter)
    taint: Taint = field(default_factory=Taint)
    heard_at: float = 0.0


def unrecorded_notes(run: JournaledRun) -> tuple[str, ...]:
    """Return what is said of calls that could not be written down before they were made."""
    if not run.unrecorded:
        return ()
    return (f"{count(run.unrecorded, 'changing call')} went unrecorded (audit.on_failure).",)


def replayed(replay: Replay, call: JournaledCall) -> Answered | None:
    """Return how an earlier attempt of the run had the call answered; None if it had not."""
    try:
        answered = replay.answer(
            call.position, call.tool, call.arguments, is_reading=call.is_reading
        )
    except ToolfoldError:
        call.is_replayed = True
        raise
    call.is_replayed = answered is not None
    return answered


async def _admitted(
    access: Access[T], call: JournaledCall, sent: OutgoingArguments, context: CallContext
) -> bool:
    """Ask the rules; return whether the call is to be made, or is only rehearsed.

    Of a call that they do not let pass the journal says nothing was done.
    """
    facts, dry_run_log = access.facts, context.dry_run_log
    taint, tainted = context.taint, ""
    if taint.is_on:
        tainted = await taint.find(call.arguments, may_write=not call.is_reading)
    try:
        if dry_run_log is None:
            await context.guard.admit(
                facts, call.arguments, call.position, sent=sent.arguments, tainted=tainted
            )
            return True
        is_asked = await context.guard.foresee(facts, sent.arguments, tainted=tainted)
    except (RunError, anyio.get_cancelled_exc_class()):
        call.is_replayed = True  # it has not happened, and may yet
        raise
    if facts.read_only and not is_asked:
        return True
    call.is_replayed = True  # as far as the journal goes: nothing was called
    dry_run_log.note(facts.name, call.arguments, is_asked=is_asked, has_schema=access.has_schema)
    return False


async def _sent(access: Access[T], sent: OutgoingArguments, context: CallContext, origin: str) -> T:
    """Send, and conceal what comes back; words of a failure are followed like any answer."""
    privacy_border, guard = context.privacy, context.guard
    guard.under_way += 1
    try:
        if privacy_border.is_on and privacy_border.covers(access.server, sent):
            async with privacy_border.errors(access.server, sent):
                answer = await access.send(sent, context, origin)
        else:
            answer = await access.send(sent, context, origin)
        return await access.conceal(answer, privacy_border, sent)
    except (BadCall, Denied):  # our own words
        raise
    except UpstreamError as error:
        said = str(error)
        await context.taint.learn(access.server, origin, said, len(said))
        raise
    finally:
        guard.under_way -= 1
