"""Write docs/errors.md: every class of error, what it means and what to do; a test holds it."""

from collections.abc import Iterator
from pathlib import Path

from toolfold import errors
from toolfold.errors import ToolfoldError

PAGE = Path(__file__).parents[1] / "docs" / "errors.md"
_HEAD = """\
# Errors

Made from `toolfold.errors` by `scripts/write_errors.py`. Messages may change; codes do not. The
terminal prints the message after `toolfold: ` and ends with status 2; REST answers it with its code;
guest code gets a `RuntimeError` (`TimeoutError` where time ran out) with the same message.

| code | class | means | do |
| --- | --- | --- | --- |
"""
REMEDIES: dict[str, str] = {
    "ToolfoldError": "Read the message: it names the thing and the next step.",
    "ConfigError": "Fix the file, setting or option that the message names; `toolfold doctor` checks all.",
    "NotFound": "Check the name; the message has the nearest one, or the command that lists them.",
    "BadInput": "Change the value that the message names. Nothing was changed.",
    "UpstreamError": "See `toolfold doctor` and `toolfold logs SERVER`.",
    "UpstreamUnavailable": "Check that the server starts: `toolfold doctor`, then `toolfold logs SERVER`.",
    "UpstreamTimedOut": "Try again, ask for less, or raise `call_timeout_s` for the server.",
    "LoginFailed": "Run `toolfold login SERVER` again; what was stored before is unchanged.",
    "BadCall": "Fix the arguments: `toolfold tools describe TOOL` shows them. Nothing was sent.",
    "Denied": "`toolfold policy check TOOL` shows the rule; `toolfold policy allow TOOL` changes it.",
    "Unrecorded": "Free space, or fix the journal (`toolfold runs verify`), then run it again.",
    "ToolFailed": "Read the server's message; the call reached it.",
    "QuestionRefused": "Give the tool all it needs as arguments.",
    "RunError": "Read the message; `toolfold runs RUN` shows what had completed.",
    "CodeRejected": "Fix the lines that the message names. Nothing ran.",
    "ValueRejected": "Send smaller or plainer values; large data belongs in the workspace.",
    "RunTimedOut": "Split the work, or raise `limits.wall_time_s`; `toolfold runs resume RUN` continues.",
    "QuestionExpired": "Run it again when a person can answer.",
    "RunCrashed": "Run it again; `toolfold logs` says why the process died.",
    "NeedsApproval": "`toolfold approve RUN` or `toolfold reject RUN`; the run waits.",
    "Rejected": "The user said no: do something else.",
    "Unanswered": "Ask again: nobody decided in time.",
    "InDoubt": "`toolfold runs resume RUN --repeat` makes the call again, `--skip` takes it as made.",
    "StateLost": "Start the session again: its variables cannot be restored.",
    "RequestFailed": "Check the address and the key: `toolfold status`, `toolfold keys`.",
    "TooManyRequests": "Wait as long as `Retry-After` says; `[keys]` in `config.toml` sets the limits.",
    "StoreError": "Check disk space and permissions of the file that the message names.",
    "StoreBusy": "Try again; if it stays, look which other process uses the file or the database.",
    "StoreDamaged": "Restore a backup, or move the file away to start empty.",
}
"""What to do, for each class."""


def classes(top: type[ToolfoldError] = ToolfoldError) -> Iterator[type[ToolfoldError]]:
    """Yield every class of error, a class before those below it."""
    yield top
    for each in top.__subclasses__():
        if each.__module__ == errors.__name__ and each.__bases__[0] is top:
            yield from classes(each)


def page() -> str:
    """Return docs/errors.md."""
    rows = [
        f"| `{each.code}` | `{each.__name__}` | {(each.__doc__ or '').strip()} "
        f"| {REMEDIES[each.__name__]} |"
        for each in classes()
    ]
    return _HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
