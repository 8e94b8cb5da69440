"""Guard: what becomes of each call of a run, before it is made."""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import anyio
import anyio.to_thread

from toolfold.catalog.questions import Ask, Question
from toolfold.catalog.tool import Tool
from toolfold.clocks import PausableClock
from toolfold.errors import (
    ConfigError,
    Denied,
    NeedsApproval,
    QuestionExpired,
    QuestionRefused,
    Rejected,
)
from toolfold.execution.approvals import Approval, Approvals, Wanted
from toolfold.execution.decisions import Action as DecidedAction
from toolfold.execution.decisions import Decided
from toolfold.execution.runs import Origin
from toolfold.execution.tiers import Tier
from toolfold.jsontypes import JsonObject
from toolfold.policy.decide import Decision, Policy, ToolFacts, decide, is_always_denied
from toolfold.policy.files import PolicyFiles
from toolfold.policy.rules import BUILTIN, Action

DEFAULT_MOST: Final = 100
"""How many calls an approval covers where the user names no other number."""

_LARGEST_MOST: Final = 10_000
_GATHER_S: Final = 0.03  # for calls that are made together to be known together
_POLL_S: Final = 0.5
_SHOWN_CHARS: Final = 300
_SAMPLES: Final = 3
_SETTLING_S: Final = 60.0


def facts_of(tool: Tool) -> ToolFacts:
    """Return what rules can know of a tool. What is built in keeps what it takes away."""
    listed = tool.listed
    if tool.is_built_in:
        return ToolFacts(tool.path, tool.server, read_only=listed.read_only, destructive=False)
    return ToolFacts(
        tool.path,
        tool.server,
        read_only=listed.read_only,
        destructive=listed.destructive,
        idempotent=listed.idempotent,
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


class Guard:
    """Decides about the calls of one run: one question for each tool, however many calls."""

    def __init__(
        self,
        policy: Policy,
        approvals: Approvals,
        run: RunFacts,
        on_decide: Callable[[Decided], None] = lambda _decided: None,
    ) -> None:
        self._on_decide = on_decide
        self.ask: Ask | None = None
        self.tier: Tier = "monty"
        self.clock: PausableClock | None = None
        self.under_way: Callable[[], int] = lambda: 0
        self._policy = policy
        self._approvals = approvals
        self._run = run
        self._counts: Counter[str] = Counter()
        self._tools: dict[str, _Asked] = {}

    async def admit(  # all that a call is decided by
        self,
        tool: Tool,
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
        self._counts[tool.path] += 1
        real = arguments if sent is None else sent
        count = self._counts[tool.path]
        decision = decide(self._policy, facts_of(tool), real, count, tainted=tainted)
        note = partial(self._note, tool.path, arguments, position, decision)
        if decision.action is Action.DENY:
            note("deny")
            raise Denied(
                f"{tool.path} was not called: a rule forbids it, {decision.why}. Do without it, "
                "or ask the user to change the rule."
            )
        if decision.action is Action.ASK:
            asked = self._tools.setdefault(tool.path, _Asked(tool.path))
            with asked.waiting(arguments):
                await self._noted(note, self._have_approved(asked, arguments, position, decision))
        elif decision.rule is not None and decision.rule.origin != BUILTIN[0].origin:
            note("allow")

    async def _noted(self, note: Callable[[DecidedAction], None], asking: Awaitable[None]) -> None:
        """Write down what became of a question."""
        try:
            await asking
        except NeedsApproval:
            note("ask")
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
        is_rule = action in {"allow", "deny", "ask"}
        self._on_decide(
            Decided(
                position=position,
                tool=tool,
                rule=decision.why,
                action=action,
                by="policy" if is_rule else "user",
                arguments_sha256=_hash(arguments),
            )
        )

    def note_replayed(self, tool: str, position: int) -> None:
        """Count a call that an earlier attempt has made."""
        self._counts[tool] += 1
        self._tools.setdefault(tool, _Asked(tool)).replayed.append(position)

    async def _have_approved(
        self, asked: "_Asked", arguments: JsonObject, position: int, decision: Decision
    ) -> None:
        await anyio.sleep(_GATHER_S if asked.left <= 0 else 0)
        async with asked.turn:
            if asked.is_rejected:
                raise _rejected(asked.tool)
            if asked.left > 0 or self._recall(asked, arguments, position):
                asked.left -= 1
                return
            if await self._is_always_allowed(asked.tool):
                return
            wanted = self._wanted(asked, arguments, position, decision)
            approval = await self._put(wanted, asked) if self.ask else None
            if approval is None:
                approval = await self._wait_outside(wanted)
            self._take(asked, approval)

    def _recall(self, asked: "_Asked", arguments: JsonObject, position: int) -> bool:
        """Look for what was approved before the run was gone on with; return whether it covers.

        It is bound to the run, the tool and the arguments of the call that waited.
        """
        if asked.is_recalled:
            return False
        asked.is_recalled = True
        approval = self._approvals.latest(self._run.first, asked.tool)
        if approval is None or approval.state == "pending" or _is_over(approval):
            return False
        if approval.state == "rejected":
            asked.is_rejected = True
            raise _rejected(asked.tool)
        used = [each for each in asked.replayed if each >= approval.position]
        is_same = position == approval.position and approval.arguments_sha256 == _hash(arguments)
        if not is_same and approval.position not in used:
            return False
        asked.left = approval.most - len(used)
        return asked.left > 0

    async def _is_always_allowed(self, tool: str) -> bool:
        return await anyio.to_thread.run_sync(
            self._approvals.is_always_allowed, self._run.scope, tool
        )

    def _wanted(
        self, asked: "_Asked", arguments: JsonObject, position: int, decision: Decision
    ) -> Wanted:
        run = self._run
        return Wanted(
            run=run.first,
            attempt=run.attempt,
            project=run.origin.project,
            client=run.origin.client,
            tool=asked.tool,
            position=position,
            arguments=_shown(arguments),
            arguments_sha256=_hash(arguments),
            known=len(asked.waits),
            rule=decision.why,
        )

    async def _put(self, wanted: Wanted, asked: "_Asked") -> Approval | None:
        """Ask the user through the client; None if that leads nowhere."""
        assert self.ask is not None  # noqa: S101
        samples = [_shown(each) for each in asked.waits[:_SAMPLES]]
        question = Question(asker="toolfold", message=_question(wanted, samples), schema=_FORM)
        try:
            reply = await self.ask(question)
        except (QuestionExpired, QuestionRefused):
            return None
        if reply.action == "cancel":
            return None
        content = reply.content or {}
        is_wanted = reply.action == "accept" and content.get("approve") is not False
        approval = await anyio.to_thread.run_sync(self._approvals.ask, wanted)
        return await anyio.to_thread.run_sync(
            lambda: self._approvals.decide(
                approval.id,
                "approved" if is_wanted else "rejected",
                most=_most(content.get("most")),
                by="the client's user",
            )
        )

    async def _wait_outside(self, wanted: Wanted) -> Approval:
        """Have it decided elsewhere: frozen, or, where that cannot be, waiting as it is."""
        with anyio.move_on_after(_SETTLING_S):
            # What others have begun shall not be in doubt.
            while self.under_way():  # noqa: ASYNC110
                await anyio.sleep(_GATHER_S)
        is_frozen = self.tier == "monty" or self.clock is None
        wanted = replace(wanted, waits_alive=not is_frozen)
        approval = await anyio.to_thread.run_sync(self._approvals.ask, wanted)
        if is_frozen or self.clock is None:
            raise NeedsApproval(waiting_text(approval))
        with self.clock.paused():
            return await self._decided(approval)

    async def _decided(self, approval: Approval) -> Approval:
        while True:
            await anyio.sleep(_POLL_S)
            now = await anyio.to_thread.run_sync(
                self._approvals.latest, approval.run, approval.tool
            )
            if now is None or now.id != approval.id or _is_over(now):
                raise Rejected(
                    f"Nobody approved {approval.tool} in time; it was not called. "
                    "Ask the user, and run the code again."
                )
            if now.state != "pending":
                return now

    def _take(self, asked: "_Asked", approval: Approval) -> None:
        if approval.state != "approved":
            asked.is_rejected = True
            raise _rejected(asked.tool)
        asked.left = approval.most - 1


class _Asked:
    """What is known of one tool that the user is asked about."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.turn = anyio.Lock()
        self.left = 0
        self.is_rejected = False
        self.is_recalled = False
        self.waits: list[JsonObject] = []
        self.replayed: list[int] = []

    def waiting(self, arguments: JsonObject) -> "_Waiting":
        """Count a call as waiting for the length of a context."""
        return _Waiting(self.waits, arguments)


class _Waiting:
    def __init__(self, waits: list[JsonObject], arguments: JsonObject) -> None:
        self._waits = waits
        self._arguments = arguments

    def __enter__(self) -> None:
        self._waits.append(self._arguments)

    def __exit__(self, *_: object) -> None:
        self._waits.remove(self._arguments)


_FORM: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "approve": {"type": "boolean", "title": "Let it be called", "default": False},
        "most": {
            "type": "integer",
            "title": "How many times in this run",
            "minimum": 1,
            "maximum": _LARGEST_MOST,
            "default": DEFAULT_MOST,
        },
    },
    "required": ["approve"],
}


def _question(wanted: Wanted, samples: list[str]) -> str:
    calls = "1 call" if wanted.known == 1 else f"{wanted.known} calls"
    return (
        f"Code of the agent wants to call {wanted.tool}: {calls} so far, more may follow in this "
        f"run.\nRule: {wanted.rule}\n" + "\n".join(f"  {sample}" for sample in samples)
    )


def waiting_text(approval: Approval) -> str:
    """Say what a run waits for, and how it is decided."""
    calls = "a call" if approval.known == 1 else f"{approval.known} calls"
    return (
        f"The run waits for the user's approval of {calls} of {approval.tool} "
        f"{approval.arguments}: {approval.rule}. It is frozen there, and goes on from there. The "
        f"user decides in a terminal: `toolfold approve {approval.attempt}` or `toolfold reject "
        f"{approval.attempt}`. Nobody else can. Then `import runs; runs.get({approval.attempt!r})` "
        "tells what came of it."
    )


def _rejected(tool: str) -> Rejected:
    return Rejected(
        f"The user rejected {tool}: it was not called. Do not try to get the same by other tools; "
        "ask the user what they want."
    )


def _is_over(approval: Approval) -> bool:
    return approval.expires_at < time.time()


def _most(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return max(1, min(value, _LARGEST_MOST))
    return DEFAULT_MOST


def _hash(arguments: JsonObject) -> str:
    text = json.dumps(arguments, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _shown(arguments: JsonObject) -> str:
    text = json.dumps(arguments, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def is_denied(rules: PolicyFiles, tool: Tool) -> bool:
    """Whether no call of a tool can ever be made, so that it need not be found."""
    try:
        return is_always_denied(rules.policy(), facts_of(tool))
    except ConfigError:  # said where anything is called
        return False


def refuse_denied(rules: PolicyFiles, tool: Tool, arguments: JsonObject, client: str) -> None:
    """Refuse what a rule forbids to those who call a tool by itself.

    What rules ask about is asked by them: a client that shows the tool to its model, or a program
    that names it. Of the holder of a key it is refused.

    Raises:
        Denied: It is forbidden, or the rules cannot be read.
    """
    try:
        decision = decide(rules.policy(client), facts_of(tool), arguments)
    except ConfigError as error:
        raise Denied(f"{tool.path} was not called. {error}") from error
    is_asked = decision.action is Action.ASK and client.startswith("key:")
    if decision.action is Action.DENY or is_asked:
        raise Denied(f"{tool.path} was not called: a rule forbids it, {decision.why}.")
