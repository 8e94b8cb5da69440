"""Calls of a run with their answers, noted and replayed; how often skills are used."""

import hashlib
import json
import logging
import reprlib
from collections import namedtuple
from typing import Any, Final

import anyio.to_thread

from toolfold.errors import (
    BadCall,
    NotFound,
    RunError,
    StoreError,
    ToolFailed,
    ToolfoldError,
    UpstreamTimedOut,
)
from toolfold.execution.skills.linker import LinkedProgram
from toolfold.jsontypes import Json, JsonObject, plain
from toolfold.sandbox.sandbox import GuestCall, GuestFailure, GuestOutcome, OnCall
from toolfold.skills.library import Library
from toolfold.skills.models import Skill
from toolfold.skills.store import MAX_RECORDED_BYTES

_NAMED: Final = "\0named"
_MAX_SHOWN_CHARS: Final = 200
_RAISED: Final = {each.code: each for each in (BadCall, NotFound, UpstreamTimedOut)}


class Recorder:
    """Answers calls as somebody else does, and notes them up to a size."""

    def __init__(self, answer: OnCall, *, max_bytes: int) -> None:
        self._answer = answer
        self._room = max_bytes
        self._calls: list[JsonObject] = []

    @property
    def calls(self) -> list[JsonObject] | None:
        """Every call in the order in which they began; None if they were too much to keep."""
        return self._calls if self._room >= 0 else None

    def begin_again(self) -> None:
        """Forget what was noted: the code runs once more."""
        self._calls = []

    async def call(self, call: GuestCall) -> Json:
        """Answer one call."""
        if self._room < 0:
            return await self._answer(call)
        noted: JsonObject = {"tool": call.function, **_arguments(call)}
        self._calls.append(noted)
        try:
            value = await self._answer(call)
        except ToolfoldError as error:
            noted |= {"error": error.code, "message": str(error)}
            self._charge(noted)
            raise
        noted["answer"] = _kept(value)
        self._charge(noted)
        return value

    def _charge(self, noted: JsonObject) -> None:
        self._room -= len(json.dumps(noted))
        if self._room < 0:
            self._calls = []


class Differs(RunError):
    """A run that does not call what was recorded."""

    code = "differs"


class RecordedAnswers:
    """Answers calls from what was noted; the first that differs ends the run."""

    def __init__(self, calls: list[JsonObject]) -> None:
        self._calls = calls
        self._next = 0
        self.difference: str | None = None

    @property
    def left(self) -> list[str]:
        """The calls that were noted and not made."""
        return [str(each["tool"]) for each in self._calls[self._next :]]

    async def call(self, call: GuestCall) -> Json:
        """Answer one call.

        Raises:
            Differs: It is not the one that was noted in its place.
        """
        place = self._next
        self._next += 1
        now: JsonObject = {"tool": call.function, **_arguments(call)}
        if place >= len(self._calls):
            self._differ(f"call {place + 1} is {_told(now)}; no more were recorded")
        then = self._calls[place]
        if (then["tool"], then["digest"]) != (now["tool"], now["digest"]):
            self._differ(f"call {place + 1} is {_told(now)}; recorded was {_told(then)}")
        if "error" in then:
            raise _RAISED.get(str(then["error"]), ToolFailed)(str(then["message"]))
        answer: Json = _revived(then.get("answer"))
        return answer

    def _differ(self, what: str) -> None:
        self.difference = what
        raise Differs(f"{what[:1].upper()}{what[1:]}.")


def _arguments(call: GuestCall) -> JsonObject:
    text = json.dumps([list(call.args), call.kwargs], sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
    shown = ", ".join(
        [
            *map(reprlib.repr, call.args),
            *(f"{name}={reprlib.repr(value)}" for name, value in call.kwargs.items()),
        ]
    )
    return {"digest": digest, "shown": shown[:_MAX_SHOWN_CHARS]}


def _told(call: JsonObject) -> str:
    return f"{call['tool']}({call['shown']})"


def _kept(value: Any) -> Json:
    """Return a value as JSON that `_revived` makes it of again, named tuples included."""
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None)
        if names is None:
            return [_kept(part) for part in value]
        parts: Json = [_kept(part) for part in value]
        return {_NAMED: [type(value).__name__, list(names), parts]}
    if isinstance(value, list):
        return [_kept(part) for part in value]
    if isinstance(value, dict):
        return {str(key): _kept(part) for key, part in value.items()}
    return plain(value)


def _revived(value: Any) -> Any:
    if isinstance(value, list):
        return [_revived(part) for part in value]
    if isinstance(value, dict):
        if value.keys() == {_NAMED}:
            name, fields, parts = value[_NAMED]
            return namedtuple(name, fields)(*map(_revived, parts))
        return {key: _revived(part) for key, part in value.items()}
    return value


_log = logging.getLogger(__name__)

_OURS: Final = frozenset({"approval", "cancelled", "crash", "rejected"})
"""Failures that say nothing of the code."""


class SkillUsageRecorder:
    """Counts uses, and keeps the newest run of each skill that succeeded."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def recorder(self, linked: LinkedProgram, answer: OnCall) -> Recorder | None:
        """Return what notes the calls of a run; None if it uses no skill."""
        return Recorder(answer, max_bytes=MAX_RECORDED_BYTES) if linked.skills else None

    async def count(
        self, linked: LinkedProgram, code: str, outcome: GuestOutcome, recorder: Recorder | None
    ) -> None:
        """Write down how a run ended, for each skill of it. Trouble is logged, never raised."""
        if recorder is not None and not (outcome.failure and outcome.failure.kind in _OURS):
            await anyio.to_thread.run_sync(self._count, linked, code, outcome, recorder.calls)

    def _count(
        self,
        linked: LinkedProgram,
        code: str,
        outcome: GuestOutcome,
        calls: list[JsonObject] | None,
    ) -> None:
        skill_store = self._library.skill_store
        try:
            for skill in linked.skills:
                root = self._library.root_of(skill)
                error = _failure_text(outcome.failure, skill) if outcome.failure else None
                skill_store.count(root, skill.name, error=error)
                if error is None and calls is not None:
                    content: JsonObject = {
                        "code": code,
                        "calls": list(calls),
                        "output": outcome.output,
                        "value": outcome.value,
                    }
                    skill_store.record(root, skill.name, digest=skill.texts.digest, content=content)
        except StoreError as error:
            _log.warning("The use of skills is not counted: %s", error)


def _failure_text(failure: GuestFailure, skill: Skill) -> str:
    """Say of an error whether it came about in a skill."""
    is_inside = f'"<skill {skill.name}>"' in failure.traceback
    return f"{'in the skill' if is_inside else 'elsewhere in the run'}: {failure.message}"
