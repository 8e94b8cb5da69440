"""Every exception we raise, as one tree.

```text
ToolfoldError
├── ConfigError            a file or setting the user wrote
├── NotFound               no tool, server, run or note of that name
├── BadInput               a value that cannot be used; nothing was changed
├── TooManyRequests        the holder of a key asks for more than it may
├── UpstreamError          an MCP server we call
│   ├── UpstreamUnavailable    it cannot be reached, or died
│   ├── UpstreamTimedOut       it did not answer in time
│   ├── LoginFailed            the browser flow gave no login
│   ├── BadCall                the arguments do not fit the tool
│   ├── Denied                 a rule forbids it
│   ├── QuestionRefused        it asks the user what cannot be asked
│   └── ToolFailed             it answered that the call failed
├── RunError               a run that we stopped
│   ├── CodeRejected           refused before anything ran
│   ├── ValueRejected          a guest value passed its budget
│   ├── RunTimedOut
│   ├── NeedsApproval          the user must be asked first; the run is frozen
│   ├── Rejected               the user was asked, and does not want it
│   ├── InDoubt                what was under way may have happened; the user decides
│   ├── QuestionExpired        nobody answered what a server asked
│   ├── RunCrashed             the worker died
│   └── StateLost              the variables of a session are lost
├── RequestFailed          a request over HTTP that got no answer
└── StoreError             our own files
```

Guest failures are values, see `sandbox.sandbox.GuestOutcome`; these are raised by the host.
"""

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


class ToolfoldError(Exception):
    """Something went wrong that a person or a model can be told about."""

    code = "error"


class ConfigError(ToolfoldError):
    """A file or a setting that the user wrote cannot be used."""

    code = "config"


class NotFound(ToolfoldError):
    """Nothing has that name."""

    code = "not_found"


class BadInput(ToolfoldError):
    """A value that was given cannot be used; nothing was changed."""

    code = "bad_input"


class TooManyRequests(ToolfoldError):
    """The holder of a key has too much under way, or asks too often; nothing was done."""

    code = "too_many_requests"

    def __init__(self, text: str, *, retry_after_s: int = 1) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


class StoreError(ToolfoldError):
    """A file of our own cannot be read or written."""

    code = "store"


class StoreBusy(StoreError):
    """Another process has locked a file of our own, or a database does not answer just now."""


class StoreDamaged(StoreError):
    """A file of our own is damaged, or belongs to another program."""


class UpstreamError(ToolfoldError):
    """A call to an MCP server did not give a value."""

    code = "upstream"


class UpstreamUnavailable(UpstreamError):
    """The server cannot be reached, or died while we waited."""

    code = "upstream_unavailable"


class UpstreamTimedOut(UpstreamError):
    """The server did not answer within its time."""

    code = "upstream_timeout"


class LoginFailed(UpstreamError):
    """Logging in to the server did not come about; what was there before is untouched."""

    code = "login_failed"


class BadCall(UpstreamError):
    """The arguments do not fit the tool; nothing was sent."""

    code = "bad_call"


class Denied(UpstreamError):
    """A rule forbids the call; nothing was sent."""

    code = "denied"


class Unrecorded(UpstreamError, StoreError):
    """The call cannot be written down, and changes something; nothing was sent."""

    code = "unrecorded"


class ToolFailed(UpstreamError):
    """The server answered that the call failed; the message is the server's own."""

    code = "tool_failed"


class QuestionRefused(UpstreamError):
    """The server asks the user something that cannot be put to them; the call fails."""

    code = "question_refused"


class RunError(ToolfoldError):
    """A run was stopped by us."""

    code = "run"
    failure = "error"
    """The kind of failure that the run ends with, where guest code is running."""


class CodeRejected(RunError):
    """The code was refused before anything ran."""

    code = "code_rejected"

    def __init__(self, text: str, *, line: int | None = None) -> None:
        super().__init__(text)
        self.line = line


class ValueRejected(RunError):
    """A value that guest code sent is larger, deeper or stranger than we take."""

    code = "value_rejected"
    failure = "value"


class RunTimedOut(RunError):
    """A run passed one of its clocks."""

    code = "run_timeout"


class QuestionExpired(RunError):
    """A server's question to the user got no answer."""

    code = "question_expired"


class RunCrashed(RunError):
    """The process that ran the code died."""

    code = "run_crashed"


class NeedsApproval(RunError):
    """The user must be asked, and cannot be now: the run is frozen before the call."""

    code = "needs_approval"
    failure = "approval"


class Rejected(RunError):
    """The user was asked, and does not want it."""

    code = "rejected"
    failure = "rejected"


class Unanswered(Rejected):
    """The user was asked, and did not decide in time."""


class InDoubt(RunError):
    """A call was under way when a run ended, and may have happened: the user has to decide."""

    code = "in_doubt"


class StateLost(RunError):
    """The variables of a session are lost."""

    code = "state_lost"


class RequestFailed(ToolfoldError):
    """A request to a toolfold got no answer, or was refused."""

    code = "request_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFault:
    """Something in a file, or in the environment when `source` is None, was not taken."""

    source: "Path | None"
    reason: str

    def __str__(self) -> str:
        """One line for a person: where, then what."""
        return f"{self.source or 'environment'}: {self.reason}"


def count(number: int, word: str, plural: str = "") -> str:
    """Return a number with its word, in the plural where that is right."""
    return f"{number:,} {word if number == 1 else plural or f'{word}s'}"


def shown(text: str, *, max_chars: int = 200) -> str:
    """Make text from a file safe to show: it may be long, and nobody may have read it before.

    What could steer a terminal is escaped, and the text is cut.
    """
    cut = text[: max_chars + 1]
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)
    return safe if len(safe) <= max_chars else f"{safe[:max_chars]}…"
