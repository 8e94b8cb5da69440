"""Keep what there is to keep of a conversation: an event, and a short record of it."""

import hashlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeAlias

import anyio.to_thread

from toolfold.config.config import Config
from toolfold.entrypoints.hooks.notes import SESSION_TAG
from toolfold.execution.verb_door import VerbDoor
from toolfold.jsontypes import Json
from toolfold.memory.models import as_it_is, as_json
from toolfold.relay.hooks.record import Transcript, describe, duration_ms, read_transcript

_SOURCE: Final = "claude-code"
_TWICE_S: Final = 60.0
_MAX_NAME: Final = 200
_TAG_DIGITS: Final = 16

Call: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[Any]]
"""Has a verb done, and returns its answer as the service gives it."""


async def record(
    door: VerbDoor, config: Config, payload: dict[str, str], *, event: str, now: float
) -> tuple[str, ...]:
    """Write down what happened; return what could not be read.

    The record of a conversation replaces the one that was made of its beginning.

    Raises:
        StoreError: Memory does not answer.
    """
    transcript, remarks = await _read(payload.get("transcript_path", ""))
    project = (config.project or config.start_directory).name
    text = describe(transcript, project=project, directory=str(config.start_directory))
    session = _name(payload.get("session_id", ""))
    call = _calls(door)
    if text:
        await _store(call, text, session)
    happened: dict[str, Any] = {"event_type": event, "session_id": session or None}
    known = await call("memory.recall_events", happened | {"since": now - _TWICE_S})
    if not (session and known.total):
        reason = _name(payload.get("reason") or payload.get("trigger") or "")
        happened |= {"content": text, "outcome": reason or None}
        happened["duration_ms"] = duration_ms(transcript)
        await call("memory.record_event", happened)
    return remarks


async def _read(path: str) -> tuple[Transcript, tuple[str, ...]]:
    if not path:
        return Transcript(), ("The client named no transcript.",)
    try:
        return await anyio.to_thread.run_sync(read_transcript, path), ()
    except (OSError, ValueError) as error:
        return Transcript(), (f"The transcript cannot be read: {error}.",)


async def _store(call: Call, text: str, session: str) -> None:
    tags = [SESSION_TAG]
    supersedes: list[str] = []
    if session:
        # Ids may begin alike; a hash of one is short, and has no commas, which part tags.
        digest = hashlib.sha256(session.encode(errors="replace")).hexdigest()
        own = f"session-{digest[:_TAG_DIGITS]}"
        tags.append(own)
        supersedes = await _earlier(call, own)
    arguments: dict[str, Any] = {
        "content": text,
        "tags": tags,
        "memory_type": "session",
        "source": _SOURCE,
    }
    kept = await call("memory.store", arguments)
    earlier: list[Json] = [each for each in supersedes if each != kept]
    if earlier:
        await call("memory.delete_batch", {"hashes": earlier})


async def _earlier(call: Call, tag: str) -> list[str]:
    """Return the records that we made with a tag; people may use it for notes of their own."""
    found = await call("memory.search_by_tag", {"tags": tag})
    own = []
    for short in [note.hash for note in found.memories]:
        note = await call("memory.get", {"hash": short})
        own += [short] if note.source == _SOURCE else []
    return own


def _calls(door: VerbDoor) -> Call:
    return partial(door.call, form=as_it_is, kept=as_json)


def _name(text: str) -> str:
    """Return a name that memory takes: no longer than it should be, and without NUL."""
    return text.replace("\0", "").strip()[:_MAX_NAME]
