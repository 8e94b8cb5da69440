"""What a hook of a client's found of a program before it ran, and what its user was asked.

A client that has such a hook asks its user about a call as a whole. What stood in that question may
be done by exactly that call; whatever else it does is decided about as without hooks. Where the
hook let a call pass unasked, because it only reads, nobody has decided about anything else.
"""

import hashlib
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from toolfold.catalog.questions import Elicitor, Question, Reply, unanswerable
from toolfold.clocks import PausableClock
from toolfold.policy.decide import Decision, Policy, ToolFacts
from toolfold.policy.rules import Action, Rule

_MAX_CALLS: Final = 500
_MAX_CONVERSATIONS: Final = 500
_VALID_S: Final = 24 * 3600.0
_ONLY_READS: Final = Rule(
    Action.ASK,
    annotations=(("read_only", (False,)),),
    origin="the client let this program run unasked because it seemed to read only",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preapproval:
    """What is known of one call of a client's."""

    scope: str
    """The namespace in which it was found out."""
    tools: frozenset[str] = frozenset()
    """Those that the user was asked about, by name."""
    is_asked: bool = False
    """Whether the user was asked at all; else the call was let pass."""
    conversation: str = ""

    def covers(self, tool: ToolFacts, decision: Decision) -> bool:
        """Whether its user has decided what a rule asks about.

        They did not see arguments, nor how many calls there are: a rule about these still asks.
        """
        rule = decision.rule
        is_plain = rule is not None and rule.when is None and rule.more_than is None
        return is_plain and not (rule and rule.tainted) and tool.name in self.tools

    def tightened(self, policy: Policy) -> Policy:
        """Return the rules for the call: where nobody was asked, what does not read asks."""
        if self.is_asked:
            return policy
        layers = (*policy.layers, (_ONLY_READS,))
        return policy._replace(layers=layers, may_trust_client=False)


class Preapprovals:
    """Keeps them until the call comes, in this process: without one a call is as without hooks."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._calls: OrderedDict[str, tuple[float, Preapproval]] = OrderedDict()
        self._sessions: OrderedDict[tuple[str, str], str] = OrderedDict()

    def note(self, tool_use: str, code: str, session: str, found: Preapproval) -> None:
        """Keep what was found of the call with that id, that code and that session."""
        self._calls[_key(tool_use, code, session)] = self._clock() + _VALID_S, found
        while len(self._calls) > _MAX_CALLS:
            self._calls.popitem(last=False)

    def take(self, tool_use: str, code: str, session: str, scope: str) -> Preapproval | None:
        """Return what was found of a call, once; None where nothing was."""
        if not tool_use:
            return None
        expires_at, found = self._calls.pop(_key(tool_use, code, session), (0.0, None))
        is_valid = found is not None and found.scope == scope and expires_at > self._clock()
        return found if is_valid else None

    def follow(self, found: Preapproval, session: str) -> None:
        """Remember in which session the calls of a conversation run."""
        if found.conversation and session:
            self._sessions[found.scope, found.conversation] = session
            while len(self._sessions) > _MAX_CONVERSATIONS:
                self._sessions.popitem(last=False)

    def session_of(self, scope: str, conversation: str) -> str:
        """Return in which session a conversation was last seen to run; "" where it was not."""
        return self._sessions.get((scope, conversation), "")


def _key(tool_use: str, code: str, session: str) -> str:
    text = "\0".join((tool_use, session, code))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class WaitingRuns:
    """Bounds the runs that wait at one time: each keeps a worker that others may need."""

    def __init__(
        self, most: int, *, on_wait: Callable[[str, str], None] = lambda _run_id, _printed: None
    ) -> None:
        self._most = max(1, most)
        self._questions: Counter[int] = Counter()
        self.on_wait = on_wait
        """Told the id of a run that waits for somebody elsewhere, and what it printed so far."""

    @contextmanager
    def waiting(self, run: object, question: Question) -> Iterator[None]:
        """Count a run as waiting for the length of this context.

        Raises:
            QuestionRefused: Too many others wait.
        """
        key = id(run)
        if key not in self._questions and len(self._questions) >= self._most:
            raise unanswerable(question, f"{self._most} other runs wait for answers already")
        self._questions[key] += 1
        try:
            yield
        finally:
            self._questions[key] -= 1
            self._questions = +self._questions


class RunElicitor:
    """Puts the questions of one run to its client; the run's clock stands still meanwhile."""

    def __init__(self, ask: Elicitor, runs: WaitingRuns, clock: PausableClock) -> None:
        self._ask = ask
        self._runs = runs
        self._clock = clock

    async def __call__(self, question: Question) -> Reply:
        with self._runs.waiting(self, question), self._clock.paused():
            return await self._ask(question)
