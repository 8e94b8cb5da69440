"""Keep what there is to keep of a conversation: an event, and a short record of it."""

import hashlib
from typing import Any, Final

import anyio.to_thread

from toolfold.config.config import Config
from toolfold.entrypoints.hooks.notes import SESSION_TAG
from toolfold.jsontypes import Json
from toolfold.memory.memories import Memories, RequestContext
from toolfold.relay.hooks.record import Transcript, describe, duration_ms, read_transcript

_SOURCE: Final = "claude-code"
_TWICE_S: Final = 60.0
_MAX_NAME: Final = 200
_TAG_DIGITS: Final = 16


async def record(
    memories: Memories, config: Config, payload: dict[str, str], *, event: str, now: float
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
    place = RequestContext(config.namespace, config.settings.memory)
    if text:
        await _store(memories, place, text, session)
    happened: dict[str, Any] = {"event_type": event, "session_id": session or None}
    known = await memories.call(place, "memory.recall_events", happened | {"since": now - _TWICE_S})
    if not (session and known.total):
        reason = _name(payload.get("reason") or payload.get("trigger") or "")
        happened |= {"content": text, "outcome": reason or None}
        happened["duration_ms"] = duration_ms(transcript)
        await memories.call(place, "memory.record_event", happened)
    return remarks


async def _read(path: str) -> tuple[Transcript, tuple[str, ...]]:
    if not path:
        return Transcript(), ("The client named no transcript.",)
    try:
        return await anyio.to_thread.run_sync(read_transcript, path), ()
    except (OSError, ValueError) as error:
        return Transcript(), (f"The transcript cannot be read: {error}.",)


async def _store(memories: Memories, place: RequestContext, text: str, session: str) -> None:
    tags = [SESSION_TAG]
    supersedes: list[str] = []
    if session:
        # Ids may begin alike; a hash of one is short, and has no commas, which part tags.
        digest = hashlib.sha256(session.encode(errors="replace")).hexdigest()
        own = f"session-{digest[:_TAG_DIGITS]}"
        tags.append(own)
        supersedes = await _earlier(memories, place, own)
    arguments: dict[str, Any] = {
        "content": text,
        "tags": tags,
        "memory_type": "session",
        "source": _SOURCE,
    }
    kept = await memories.call(place, "memory.store", arguments)
    earlier: list[Json] = [each for each in supersedes if each != kept]
    if earlier:
        await memories.call(place, "memory.delete_batch", {"hashes": earlier})


async def _earlier(memories: Memories, place: RequestContext, tag: str) -> list[str]:
    """Return the records that we made with a tag; people may use it for notes of their own."""
    found = await memories.call(place, "memory.search_by_tag", {"tags": tag})
    own = []
    for short in [note.hash for note in found.memories]:
        note = await memories.call(place, "memory.get", {"hash": short})
        own += [short] if note.source == _SOURCE else []
    return own


def _name(text: str) -> str:
    """Return a name that memory takes: no longer than it should be, and without NUL."""
    return text.replace("\0", "").strip()[:_MAX_NAME]
