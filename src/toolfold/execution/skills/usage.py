"""What runs say of the skills that they used: how often, how well, and what to test them by."""

import logging
from typing import Final

import anyio.to_thread

from toolfold.errors import StoreError
from toolfold.execution.skills.linker import LinkedProgram
from toolfold.execution.skills.recorder import Recorder
from toolfold.jsontypes import JsonObject
from toolfold.sandbox.sandbox import GuestFailure, GuestOutcome, OnCall
from toolfold.skills.library import Library
from toolfold.skills.models import Skill
from toolfold.skills.store import MAX_RECORDED_BYTES

_log = logging.getLogger(__name__)

_OURS: Final = frozenset({"approval", "cancelled", "crash", "rejected"})
"""Failures that say nothing of the code."""


class SkillUsageRecorder:
    """Counts uses, and keeps the newest run of each skill that ended well."""

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
                error = _told(outcome.failure, skill) if outcome.failure else None
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


def _told(failure: GuestFailure, skill: Skill) -> str:
    """Say of an error whether it came about in a skill."""
    is_inside = f'"<skill {skill.name}>"' in failure.traceback
    return f"{'in the skill' if is_inside else 'elsewhere in the run'}: {failure.message}"
