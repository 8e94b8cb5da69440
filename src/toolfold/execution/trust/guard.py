"""Guard: what becomes of each call of a run, before it is made."""

import hashlib
import json
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import anyio
import anyio.to_thread

from toolfold.catalog.names import former_name
from toolfold.catalog.questions import Elicitor, Question, Reply
from toolfold.catalog.tool import Tool
from toolfold.clocks import PausableClock
from toolfold.errors import (
    ConfigError,
    Denied,
    NeedsApproval,
    QuestionExpired,
    QuestionRefused,
    Rejected,
    StoreError,
    Unanswered,
)
from toolfold.execution.tiers import Tier
from toolfold.execution.trust.approval_form import (
    MAX_APPROVED_CALLS,
    approved_calls,
    is_for_good,
    question,
    rejected_text,
    shown_arguments,
    shown_rule,
    waiting_text,
)
from toolfold.execution.trust.approvals import (
    Approval,
    ApprovalRequest,
    Approvals,
    ApprovalState,
    scope_of,
)
from toolfold.execution.trust.asked_clients import AUTOMATIC_S
from toolfold.execution.trust.pinned_definitions import DefinitionChange, digest
from toolfold.execution.trust.preapproval import Preapproval, WaitingRuns
from toolfold.journal.decisions import DecidedAction as DecidedAction
from toolfold.journal.decisions import DecisionEvent
from toolfold.journal.runs import Origin
from toolfold.jsontypes import JsonObject
from toolfold.policy.decide import Decision, Policy, Ruling, ToolFacts, is_always_denied
from toolfold.policy.files import PolicyFiles
from toolfold.policy.rules import BUILTIN, Action

_log = logging.getLogger(__name__)

_GATHER_S: Final = 0.03  # for calls that are made together to be known together
_GATHER_MOST_S: Final = 1.0
_POLL_S: Final = 0.5
_SAMPLES: Final = 3
_SETTLING_S: Final = 60.0


def facts_of(tool: Tool) -> ToolFacts:
    """Return what rules can know of a tool. What is built in keeps what it takes away."""
    listed = tool.listed
    if tool.is_built_in:
        return ToolFacts(
            tool.path,
            tool.server,
            read_only=listed.read_only,
            destructive=False,
            other_names=(tool.own_path, f"toolfold.{tool.own_path}"),
        )
    former = former_name(tool.module)
    modules = (tool.module, tool.server, *filter(None, [former]))
    return ToolFacts(
        tool.path,
        tool.server,
        read_only=listed.read_only,
        destructive=listed.destructive,
        idempotent=listed.idempotent,
        other_names=(
            *(f"{each}.{listed.name}" for each in modules),
            *(f"{each}.{tool.function}" for each in modules[1:]),
        ),
    )


def facts_of_offer(
    servers: Mapping[str, str], named: str, verb: str = "resources.read"
) -> ToolFacts:
    """Return what rules can know of reading a resource, or of `prompts.get`.

    Its server is named as it is or as its module; `mail.*` is about those of mail too.
    """
    server = servers.get(named, named)
    names = [f"{module}.{verb}" for module, each in servers.items() if each == server]
    names.append(f"{server}.{verb}")
    return ToolFacts(
        names[0], server, read_only=True, destructive=False, other_names=tuple(names[1:])
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """Which run it is."""

    first: str
    """The id of its first attempt."""
    attempt: str
    origin: Origin
    scope: str
    """The namespace in which the user allows tools for good."""
    made: Callable[[str], int] = lambda _tool: 0
    """Says how many calls of a tool earlier attempts have made."""


class CallGuard:
    """Decides about the calls of one run: one question for each tool, however many calls."""

    def __init__(
        self,
        policy: Policy,
        approvals: Approvals,
        run: RunFacts,
        on_decide: Callable[[DecisionEvent], None] = lambda _decided: None,
        *,
        counts: Counter[str] | None = None,
        may_wait: bool = True,
    ) -> None:
        """Decide by `policy`; where `counts` are given, calls count on from there.

        Where a run may not wait for an approval, what nobody can be asked about now is refused.
        """
        self._on_decide = on_decide
        self.ask: Elicitor | None = None
        self.tier: Tier = "monty"
        self.clock: PausableClock | None = None
        self.waiting: WaitingRuns | None = None
        self.on_wait: Callable[[str], None] = lambda _text: None
        self.on_automatic_answer: Callable[[], None] = lambda: None
        self.preapproval: Preapproval | None = None
        self.printed: Callable[[], str] = str
        self.where_asked = "Call it in execute_code, where the run waits for the answer."
        """What to do where nobody can be asked."""
        self._policy = policy
        self._approvals = approvals
        self._run = run
        self._rulings: dict[ToolFacts, Ruling] = {}
        self._counts: Counter[str] = Counter() if counts is None else counts
        self._may_wait = may_wait
        self.under_way = 0
        """How many calls are being sent: no run is frozen meanwhile."""
        self._made: Counter[str] = Counter()
        self._tools: dict[str, _AskedTool] = {}
        self._is_freezing = False
        self._changed: dict[str, DefinitionChange] = {}
        self.notes: list[str] = []
        """What the reply says of tools that have changed."""

    async def admit(  # all that a call is decided by
        self,
        tool: ToolFacts,
        arguments: JsonObject,
        position: int,
        *,
        sent: JsonObject | None = None,
        tainted: str = "",
    ) -> None:
        """Let a call pass, or not. Rules decide about what is `sent`; people see `arguments`.

        `tainted` says which argument holds what an untrusted upstream answered, if one does.

        Raises:
            Denied: A rule forbids it.
            NeedsApproval: The user must be asked, and cannot be now.
            Rejected: The user does not want it.
        """
        await self._until_thawed()
        if tool not in self._rulings and tool.definition:
            await self._compare(tool)
        decision = self._decide(tool, arguments if sent is None else sent, tainted)
        if tool.name in self._changed:
            decision = self._stricter(tool, decision)
        note = partial(self._note, tool.name, arguments, position, decision)
        if decision.action is Action.DENY:
            note("deny")
            raise _denied(tool, decision)
        if decision.action is Action.ASK and self._is_preapproved(tool, decision):
            note("approved")
        elif decision.action is Action.ASK:
            asked = self._tools.setdefault(tool.name, _AskedTool(tool.name, tool.definition))
            with asked.waiting(arguments):
                await self._noted(note, self._have_approved(asked, arguments, position, decision))
        elif decision.rule is not None and decision.rule.origin != BUILTIN[0].origin:
            note("allow")
        if tool.name in self._changed:
            await self._pin(tool)
        self._made[tool.name] += 1

    def _is_preapproved(self, tool: ToolFacts, decision: Decision) -> bool:
        """Whether the user was asked about a tool before the run began."""
        return self.preapproval is not None and self.preapproval.covers(tool, decision)

    @property
    def is_careful(self) -> bool:
        """Whether it matters what stands in the program."""
        return self._policy.is_careful

    async def _compare(self, tool: ToolFacts) -> None:
        """Notice that a tool has changed its definition since it was last used."""
        pinned, asked = self._approvals.definitions, (self._run.scope, tool.name, tool.definition)
        if pinned.knows(*asked):
            return
        try:
            change = await anyio.to_thread.run_sync(pinned.compare, *asked)
            if change is None:
                await anyio.to_thread.run_sync(pinned.pin, *asked)
        except StoreError as error:  # calls that change anything are refused by the journal then
            _log.warning("%s", error)
            return
        if change is not None and tool.name not in self._changed:
            self._changed[tool.name] = change
            self.notes.append(_changed_text(change))

    def _stricter(self, tool: ToolFacts, decision: Decision) -> Decision:
        """Ask about a tool that is read-only no more, unless a rule of the user's decides."""
        is_ruled = decision.rule is not None and decision.rule not in BUILTIN
        if is_ruled or not self._policy.built_in or not self._changed[tool.name].ends_read_only:
            return decision
        return Decision(Action.ASK, BUILTIN[0], "its server marked it as read-only before")

    async def _pin(self, tool: ToolFacts) -> None:
        """Keep what a tool says of itself now: it is used so, and the user was asked if need be."""
        self._changed.pop(tool.name, None)
        pin = self._approvals.definitions.pin
        try:
            await anyio.to_thread.run_sync(pin, self._run.scope, tool.name, tool.definition)
        except StoreError as error:
            _log.warning("%s", error)

    def asks(self, tool: ToolFacts) -> bool:
        """Whether a rule asks about a tool, as far as that can be told without a call."""
        return Ruling(self._policy, tool).decide({}).action is Action.ASK

    def is_open(self, tool: ToolFacts) -> bool:
        """Whether every call of a tool is allowed, whatever it is like."""
        return Ruling(self._policy, tool).is_open

    async def foresee(self, tool: ToolFacts, sent: JsonObject, *, tainted: str = "") -> bool:
        """Return whether the user would be asked about a call that is not made.

        Raises:
            Denied: A rule forbids it.
        """
        decision = self._decide(tool, sent, tainted)
        if decision.action is Action.DENY:
            raise _denied(tool, decision)
        if decision.action is not Action.ASK:
            return False
        return not await self._is_always_allowed(tool.name, digest(tool.definition))

    def _decide(self, tool: ToolFacts, sent: JsonObject, tainted: str) -> Decision:
        self._counts[tool.name] += 1
        ruling = self._rulings.get(tool)
        if ruling is None:
            ruling = self._rulings[tool] = Ruling(self._policy, tool)
        return ruling.decide(sent, self._counts[tool.name], tainted=tainted)

    async def _until_thawed(self) -> None:
        """Begin nothing while the run is being frozen, which ends it."""
        while self._is_freezing:  # noqa: ASYNC110
            await anyio.sleep(_GATHER_S)

    async def _noted(self, note: Callable[[DecidedAction], None], asking: Awaitable[None]) -> None:
        """Write down what became of a question."""
        try:
            await asking
            await self._until_thawed()  # another call may have begun to freeze the run meanwhile
        except NeedsApproval:
            note("ask")
            raise
        except Unanswered:
            note("expired")
            raise
        except Rejected:
            note("rejected")
            raise
        note("approved")

    def _note(
        self,
        tool: str,
        arguments: JsonObject,
        position: int,
        decision: Decision,
        action: DecidedAction,
    ) -> None:
        is_user = action in {"approved", "rejected"}
        self._on_decide(
            DecisionEvent(
                position=position,
                tool=tool,
                rule=shown_rule(decision.why),
                action=action,
                by="user" if is_user else "policy",
                arguments_sha256="" if action == "allow" else _hash(arguments),
            )
        )

    def note_replayed(self, tool: str) -> None:
        """Count a call that an earlier attempt has made."""
        self._counts[tool] += 1

    async def _have_approved(
        self, asked: "_AskedTool", arguments: JsonObject, position: int, decision: Decision
    ) -> None:
        if asked.is_always_allowed:
            return
        await asked.gather()
        async with asked.turn:
            if not asked.is_recalled:
                await self._recall(asked)
            if asked.is_rejected:
                raise Rejected(rejected_text(asked.tool))
            if asked.left > 0:
                asked.left -= 1
                return
            asked.is_always_allowed = await self._is_always_allowed(asked.tool, asked.definition)
            if asked.is_always_allowed:
                return
            wanted = self._wanted(asked, arguments, position, decision)
            may_trust = self._may_trust_client(decision)
            approval = await self._put(wanted, asked, may_trust=may_trust) if self.ask else None
            if approval is None:
                approval = await self._wait_outside(wanted)
            asked.is_rejected = approval.state != "approved"
            if asked.is_rejected:
                raise Rejected(rejected_text(asked.tool))
            asked.left = approval.most - 1

    async def _recall(self, asked: "_AskedTool") -> None:
        """Look for what was decided before the run was resumed.

        It is bound to the run, the tool and the arguments of the call that waited: that one must
        wait again, or have been made since.
        """
        asked.is_recalled = True
        approval = await anyio.to_thread.run_sync(
            self._approvals.latest, self._run.first, asked.tool
        )
        if approval is None or approval.state == "pending" or _is_over(approval):
            return
        asked.is_rejected = approval.state == "rejected"
        used = self._run.made(asked.tool) - approval.made
        waits = any(_hash(each) == approval.arguments_sha256 for each in asked.waits)
        if waits or used > 0:
            asked.left = approval.most - used

    async def _is_always_allowed(self, tool: str, definition: str) -> bool:
        scope = scope_of(self._run.scope, self._run.origin.client)
        return await anyio.to_thread.run_sync(
            self._approvals.is_always_allowed, scope, tool, definition
        )

    def _wanted(
        self, asked: "_AskedTool", arguments: JsonObject, position: int, decision: Decision
    ) -> ApprovalRequest:
        run = self._run
        return ApprovalRequest(
            run=run.first,
            attempt=run.attempt,
            project=run.origin.project,
            client=run.origin.client,
            tool=asked.tool,
            position=position,
            arguments=shown_arguments(arguments),
            arguments_sha256=_hash(arguments),
            known=len(asked.waits),
            made=run.made(asked.tool) + self._made[asked.tool],
            rule=shown_rule(decision.why),
            definition=asked.definition,
        )

    def _may_trust_client(self, decision: Decision) -> bool:
        """Whether it is enough that the client let its user decide about the program."""
        is_local = self._run.origin.is_local_client
        return is_local and self._policy.may_trust_client and decision.rule in BUILTIN

    async def _put(
        self, wanted: ApprovalRequest, asked: "_AskedTool", *, may_trust: bool
    ) -> Approval | None:
        """Ask the user through the client; None if that leads nowhere.

        A client that refuses by itself asks nobody; if it may be trusted, it has decided already.
        What refuses sooner than a person can is asked once more to be sure of that.
        """
        is_local = self._run.origin.is_local_client
        form = question(wanted, asked.waits[:_SAMPLES], may_stay=is_local)
        try:
            reply, is_automatic = await self._reply(form)
            if is_automatic and may_trust:
                reply, is_automatic = await self._reply(form)
        except (QuestionExpired, QuestionRefused):
            return None
        most, by = approved_calls(reply, wanted.known), "the client's user"
        if is_automatic and may_trust:
            await anyio.to_thread.run_sync(self.on_automatic_answer)
            most, by = MAX_APPROVED_CALLS, "the client, which does not ask"
        if most is None:
            return None
        always = is_local and is_for_good(reply)
        return await anyio.to_thread.run_sync(self._write_reply, wanted, most, by, always)

    async def _reply(self, form: Question) -> tuple[Reply, bool]:
        """Put a question; return the reply, and whether no person can have given it."""
        assert self.ask is not None  # noqa: S101
        began = time.monotonic()
        reply = await self.ask(form)
        return reply, reply.action != "accept" and time.monotonic() - began < AUTOMATIC_S

    def _write_reply(self, wanted: ApprovalRequest, most: int, by: str, always: bool) -> Approval:
        approval = self._approvals.ask(wanted)
        state: ApprovalState = "approved" if most else "rejected"
        if always and most:
            scope = scope_of(self._run.scope, self._run.origin.client)
            self._approvals.allow_always(scope, wanted.tool)
        return self._approvals.decide(approval.id, state, most=most, by=by)

    async def _wait_outside(self, wanted: ApprovalRequest) -> Approval:
        """Have it decided elsewhere: frozen, or, where that cannot be, waiting as it is."""
        if not self._may_wait:
            raise NeedsApproval(_unasked(wanted, self.where_asked))
        if self.tier == "monty" or self.clock is None or self.waiting is None:
            raise NeedsApproval(waiting_text(await self._freeze(wanted)))
        try:
            with self.waiting.waiting(self, question(wanted, [])), self.clock.paused():
                return await self._wait_alive(replace(wanted, waits_alive=True))
        except QuestionRefused:  # too many wait: who goes on with it begins anew, and repeats none
            raise NeedsApproval(waiting_text(await self._freeze(wanted))) from None

    async def _freeze(self, wanted: ApprovalRequest) -> Approval:
        """Write the question down when nothing is under way any more that would be in doubt."""
        await self._until_thawed()
        self._is_freezing = True
        try:
            with anyio.move_on_after(_SETTLING_S):
                while self.under_way:  # noqa: ASYNC110
                    await anyio.sleep(_GATHER_S)
            return await anyio.to_thread.run_sync(self._approvals.ask, wanted)
        except BaseException:
            self._is_freezing = False
            raise

    async def _wait_alive(self, wanted: ApprovalRequest) -> Approval:
        approval = await anyio.to_thread.run_sync(self._approvals.ask, wanted)
        self.on_wait(waiting_text(approval))
        if self.waiting is not None:
            self.waiting.on_wait(self._run.attempt, self.printed())
        return await self._decided(approval)

    async def _decided(self, approval: Approval) -> Approval:
        while True:
            await anyio.sleep(_POLL_S)
            now = await anyio.to_thread.run_sync(
                self._approvals.latest, approval.run, approval.tool
            )
            if now is None or now.id != approval.id or _is_over(now):
                raise Unanswered(
                    f"{approval.tool} was not approved in time and was not called. "
                    "Ask the user, and run the code again."
                )
            if now.state != "pending":
                return now


class _AskedTool:
    """What is known of one tool that the user is asked about."""

    def __init__(self, tool: str, definition: str) -> None:
        self.tool = tool
        self.definition = digest(definition)
        self.turn = anyio.Lock()
        self.left = 0
        self.is_rejected = False
        self.is_recalled = False
        self.is_always_allowed = False
        self.waits: list[JsonObject] = []

    def waiting(self, arguments: JsonObject) -> "_PendingApproval":
        """Count a call as waiting for the length of a context."""
        return _PendingApproval(self.waits, arguments)

    async def gather(self) -> None:
        """Wait until no more calls join those that wait, so that one question is about all."""
        known = 0
        with anyio.move_on_after(_GATHER_MOST_S):
            while self.left <= 0 and known < len(self.waits):
                known = len(self.waits)
                await anyio.sleep(_GATHER_S)


class _PendingApproval:
    def __init__(self, waits: list[JsonObject], arguments: JsonObject) -> None:
        self._waits = waits
        self._arguments = arguments

    def __enter__(self) -> None:
        self._waits.append(self._arguments)

    def __exit__(self, *_: object) -> None:
        self._waits.remove(self._arguments)


def _denied(tool: ToolFacts, decision: Decision) -> Denied:
    return Denied(
        f"{tool.name} was not called: a rule forbids it, {shown_rule(decision.why)}. Do without "
        "it, or ask the user to change the rule."
    )


def _changed_text(change: DefinitionChange) -> str:
    parts = list(dict.fromkeys(line.partition(":")[0] for line in change.lines()))
    return (
        f"{change.tool} has changed its definition since it was last used "
        f"({', '.join(parts)}): `toolfold tools changes` shows it."
    )


def _unasked(wanted: ApprovalRequest, where_asked: str) -> str:
    return (
        f"{wanted.tool} was not called: it needs the user's approval, {wanted.rule}, and nobody "
        f"can be asked here. {where_asked}"
    )


def _is_over(approval: Approval) -> bool:
    return approval.expires_at < time.time()


def _hash(arguments: JsonObject) -> str:
    text = json.dumps(arguments, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def is_denied(rules: PolicyFiles, tool: Tool, client: str = "") -> bool:
    """Whether no call of a tool can ever be made by a client, so that it need not be found."""
    try:
        return is_always_denied(rules.policy(client), facts_of(tool))
    except ConfigError:  # said where anything is called
        return False
