"""What the model reads after a run."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from toolfold.catalog.tool import Blob
from toolfold.errors import count
from toolfold.execution.analysis.gaps import Unsupported
from toolfold.execution.analysis.review import Finding
from toolfold.jsontypes import Json, JsonObject
from toolfold.sandbox.sandbox import GuestFailure, GuestOutcome
from toolfold.workspace.records import shape_of_value

_KEYS_CHARS: Final = 300
_LIST_OF: Final = "list of "


@dataclass(frozen=True, slots=True, kw_only=True)
class OverflowText:
    """One text that is too long for a reply, and what is said of it."""

    text: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedOverflow:
    """What of a run was too long; None for what was not."""

    output: OverflowText | None = None
    value: OverflowText | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what is said of it all."""
        return tuple(kept.words for kept in (self.output, self.value) if kept)


class ArtifactSaver(Protocol):
    """Saves a file of a run."""

    async def save(self, name: str, content: bytes) -> str:
        """Return its path, or raise an `OSError`."""
        ...


def render(value: Json) -> str:
    """Return a value as a model reads it best: text as it is, other values as compact JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


async def save_overflow(
    outcome: GuestOutcome, artifacts: ArtifactSaver, *, max_chars: int
) -> SavedOverflow:
    """Save what is too long to be shown, if all of it together is."""
    output, value = outcome.output, render(outcome.value)
    most = max_chars // 2 if outcome.failure else max_chars
    if len(output) + len(value) <= most:
        return SavedOverflow()
    saved: dict[str, OverflowText] = {}
    if len(output) > most // 4:
        saved["output"] = await _keep(artifacts, "printed", output, output)
    if len(value) > most // 4:
        saved["value"] = await _keep(artifacts, "value", value, outcome.value)
    return SavedOverflow(**saved)


async def _keep(artifacts: ArtifactSaver, what: str, text: str, value: Json) -> OverflowText:
    suffix = "txt" if isinstance(value, str) else "json"
    shape = shape_of_value(value)
    subject = "What was printed" if what == "printed" else "The value"
    told = f"{subject} has {len(text):,} characters: {describe(shape)}."
    try:
        path = await artifacts.save(f"-{what}.{suffix}", text.encode("utf-8", "replace"))
    except OSError as error:
        return OverflowText(text=text, words=f"{told} It could not be saved: {error.strerror}.")
    return OverflowText(
        text=text, words=f"{told} Saved whole: {path}\nRead it: {reading(path, shape)}"
    )


def describe(shape: JsonObject) -> str:
    """Say what a shape is: type, length, keys, a sample."""
    kind, length = str(shape["type"]), shape.get("length")
    unit = {"text": "line"}.get(kind, "item" if kind == "list" else "key")
    words = kind if length is None else f"{kind} of {count(int(str(length)), unit)}"
    if keys := shape.get("keys"):
        listed = json.dumps(keys, ensure_ascii=False)
        words += f", keys {listed[:_KEYS_CHARS]}{'…' if len(listed) > _KEYS_CHARS else ''}"
    if "sample" in shape and kind != "text":
        words += f", the first {json.dumps(shape['sample'], ensure_ascii=False)}"
    return words


def reading(path: str, shape: JsonObject) -> str:
    """Return the line of code that reads on."""
    if shape["type"] == "text":
        return f'open("{path}").read()[:4000]'
    keys = shape.get("keys")
    if shape["type"] == "list":
        return f'import workspace; workspace.records("{path}", 0, 20)'
    parts = keys.items() if isinstance(keys, dict) else ()
    for key, told in parts:
        if isinstance(told, str) and told.startswith(_LIST_OF):
            return f'import workspace; workspace.records("{path}", 0, 20, at="{key}")'
    return f'import json; json.load(open("{path}"))'


_SHOWN_FINDINGS = 5
_SHOWN_FRAMES = 4
_FRAME = re.compile(r'^  File "<([^>]*)>", line (\d+), in (.*)$')
_SKILL = "skill "
"""How what stands for the file of a skill in tracebacks begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTally:
    """How often one tool was called in a run, and how those calls ended."""

    tool: str
    completed: int = 0
    failed: int = 0
    unknown: int = 0
    """Begun, but not answered when the run was stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Where the time of a run went, in milliseconds."""

    plan_ms: float = 0.0
    connect_ms: float = 0.0
    check_ms: float = 0.0
    sandbox_ms: float = 0.0
    upstream_ms: float = 0.0
    shape_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailure:
    """Why a run did not reach its end."""

    kind: str
    message: str
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """What came of a run. `text` is what the model reads; the rest is for programs."""

    success: bool
    text: str
    output: str = ""
    value: Json = None
    error: RunFailure | None = None
    calls: tuple[ToolTally, ...] = ()
    waits: tuple[str, ...] = ()
    images: tuple[Blob, ...] = ()
    times: Times = field(default_factory=Times)
    tier: str = ""
    """The interpreter that ran the code; none if nothing was run."""
    run_id: str = ""
    """Under which the journal knows it."""
    session: str = ""
    """The session that its variables are kept in, if they are."""
    trouble: str = ""
    """Of `text`, what went wrong and which calls had completed, without what the code printed."""


class Tally:
    """Counts the calls of one run."""

    def __init__(self) -> None:
        self._begun: Counter[str] = Counter()
        self._completed: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()

    def begin(self, tool: str) -> int:
        """Count a call that begins; return how many of this tool have begun."""
        self._begun[tool] += 1
        return self._begun[tool]

    def take_back(self, tool: str) -> None:
        """Forget a call that was not made after all."""
        self._begun[tool] -= 1
        self._begun = +self._begun

    def complete(self, tool: str) -> None:
        """Count a call that the tool answered."""
        self._completed[tool] += 1

    def fail(self, tool: str) -> None:
        """Count a call that failed."""
        self._failed[tool] += 1

    @property
    def total(self) -> int:
        """How many calls have begun."""
        return self._begun.total()

    def counts(self) -> tuple[ToolTally, ...]:
        """Return the counts, in the order of the tools' first calls."""
        return tuple(
            ToolTally(
                tool=tool,
                completed=self._completed[tool],
                failed=self._failed[tool],
                unknown=begun - self._completed[tool] - self._failed[tool],
            )
            for tool, begun in self._begun.items()
        )


def success_text(
    outcome: GuestOutcome, waits: Iterable[str], saved: SavedOverflow, *, max_chars: int
) -> str:
    """What was printed, then the value of the last line; of what was saved, a preview."""
    room = max_chars // (2 * max(1, len(saved.notes)))
    printed = _previewed(_printed(outcome), saved.output, room)
    parts = [printed, _previewed(render(outcome.value), saved.value, room)]
    text = "\n".join(part for part in parts if part)
    if not text:
        text = "No output. Print a value, or end with an expression, to see it."
    return with_notes(text, waits)


def _previewed(text: str, kept: OverflowText | None, room: int) -> str:
    if kept is None:
        return text
    return f"{shorten(text, room, hint='')}\n{kept.words}"


def failure_text(
    outcome: GuestOutcome,
    source: str,
    counts: Iterable[ToolTally],
    waits: Iterable[str],
    *,
    max_chars: int,
    hint: str | None,
) -> str:
    """What was printed until then, what went wrong where, and which calls had completed."""
    assert outcome.failure is not None  # noqa: S101
    error = shorten(_error(outcome.failure, source, hint), 4_000)
    parts = [shorten(_printed(outcome), max_chars // 2), error]
    parts.append(completed_text(counts))
    return with_notes("\n".join(part for part in parts if part), waits)


def rejection_text(findings: Iterable[Finding], source: str, *, missed: str | None = None) -> str:
    """Why nothing was run, with the lines and the fixes; and why CPython was `missed`."""
    found = list(findings)
    lines = source.split("\n")
    parts = ["Nothing was run; no tool was called."]
    for finding in found[:_SHOWN_FINDINGS]:
        parts.append(f"Line {finding.line}: {finding.message}")
        if 1 <= finding.line <= len(lines):
            parts.append(f"    {lines[finding.line - 1].strip()[:200]}")
    if len(found) > _SHOWN_FINDINGS:
        parts.append(f"... and {len(found) - _SHOWN_FINDINGS} more.")
    if missed:
        parts.append(f"CPython, which has all of Python, is not available: {missed}.")
    return "\n".join(parts)


def unsupported_findings(constructs: Iterable[Unsupported]) -> list[Finding]:
    """Say of each construct that the sandbox lacks how to write it instead."""
    return [
        Finding(
            line=found.line,
            message=f"{found.construct} is not supported in this sandbox: {found.rewrite}.",
        )
        for found in constructs
    ]


def doubt_text(run_id: str, doubts: Sequence[object]) -> str:
    """Say which calls may have happened, and how to go on."""
    shown = "\n".join(f"  {doubt}" for doubt in doubts[:_SHOWN_FINDINGS])
    more = f"\n  and {len(doubts) - _SHOWN_FINDINGS} more" if len(doubts) > _SHOWN_FINDINGS else ""
    return (
        f"Nothing was run. The run {run_id} ended during these calls; their outcome is "
        f"unknown:\n{shown}{more}\nCheck whether they took effect. Then the user decides: "
        f"`toolfold runs resume {run_id} --repeat` repeats them, `--skip` treats them as done."
    )


def background_text(run_id: str, seconds: float) -> str:
    """Say that a run goes on after its client was answered."""
    return (
        f"The run continues after {seconds:g} s. Its id is {run_id}: its result is added to the "
        "answer of your next call once it is ready, so do other work and do not ask for it. "
        f"With nothing else to do, `import runs; runs.wait({run_id!r})` waits for it; "
        f"`runs.stop({run_id!r})` ends it."
    )


def ended_text(run_id: str, text: str) -> str:
    """Say what came of a run whose client was answered before its end."""
    return f"The run {run_id}, which continued in the background, has ended:\n{text}"


def completed_text(counts: Iterable[ToolTally]) -> str:
    """Say which calls had completed when a run stopped early."""
    counts = list(counts)
    if not counts:
        return "No tool had been called."
    completed = ", ".join(f"{c.tool} {c.completed}" for c in counts if c.completed) or "none"
    text = f"Calls completed before it stopped: {completed}."
    if failed := ", ".join(f"{c.tool} {c.failed}" for c in counts if c.failed):
        text += f" Failed: {failed}."
    if unknown := ", ".join(f"{c.tool} {c.unknown}" for c in counts if c.unknown):
        text += f" Begun, outcome not known: {unknown}."
    return text


def shorten(text: str, max_chars: int, *, hint: str = "; print a summary instead") -> str:
    """Keep the head and the tail of a text that is too long, and say what was left out."""
    if len(text) <= max_chars:
        return text
    head = max_chars * 2 // 3
    tail = max_chars - head
    left_out = len(text) - head - tail
    return (
        f"{text[:head]}\n... {left_out:,} of {count(len(text), 'character')} left out{hint} ...\n"
        f"{text[-tail:]}"
    )


def _printed(outcome: GuestOutcome) -> str:
    text = outcome.output.removesuffix("\n")
    if outcome.output_dropped:
        text += f"\n... {count(outcome.output_dropped, 'more character')} printed and dropped."
    return text


def with_notes(text: str, waits: Iterable[str]) -> str:
    """Return a reply with what must be known besides."""
    return "\n".join([text, *(f"Note: {wait}" for wait in waits)])


def _error(failure: GuestFailure, source: str, hint: str | None) -> str:
    if failure.kind == "approval":
        return failure.message
    where = f" on line {failure.line}" if failure.line else ""
    text = f"Error{where}: {failure.message}"
    lines = source.split("\n")
    if failure.line and failure.line <= len(lines):
        text += f"\n    {lines[failure.line - 1].strip()[:200]}"
    callers = _callers(failure.traceback)
    if callers:
        text += "\n" + "\n".join(callers)
    if hint:
        text += f"\nHint: {hint}"
    return text


def _callers(traceback: str) -> list[str]:
    """Return the way to the failing line, one caller a line, without that of the code itself."""
    frames = [match.groups() for line in traceback.split("\n") if (match := _FRAME.match(line))]
    own = [at for at, frame in enumerate(frames) if not frame[0].startswith(_SKILL)]
    if own:
        del frames[own[-1]]
    return [_frame_line(*frame) for frame in frames][-_SHOWN_FRAMES:]


def _frame_line(file: str, line: str, where: str) -> str:
    if file.startswith(_SKILL):
        return f"  in the skill {file.removeprefix(_SKILL)}, line {line}, in {where}"
    return f"  called from line {line} in {where}"
