"""What is kept of a conversation: a short record, made of its transcript, without secrets.

A transcript is the client's file of JSON lines. What it holds is read as data, and whatever is not
as expected is passed over.
"""

import json
import os
import stat

from toolfold.relay.hooks.secrets import beginning_without_secrets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_HEAD_BYTES = 1_000_000
_TAIL_BYTES = 4_000_000
_FIRST_PROMPTS = 2
_LAST_PROMPTS = 4
_PROMPT_CHARS = 240
_ENDING_CHARS = 600
_FILES = 12
_PATH_CHARS = 400
_EDITING = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
# The client puts words of its own into the mouth of the user, each between tags.
_NOT_SAID = ("<", "Caveat: ", "[Request interrupted")


class Transcript:
    """What a transcript says that is worth a record."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.ending = ""
        """What the model said last."""
        self.files: dict[str, None] = {}
        """Those that were edited, in order."""
        self.first_at = ""
        self.last_at = ""

    def add(self, entry: "dict[str, Any]") -> None:
        """Take in one line of the transcript."""
        if entry.get("isMeta") or entry.get("isSidechain"):
            return
        if isinstance(at := entry.get("timestamp"), str):
            self.first_at, self.last_at = self.first_at or at, at
        message = entry.get("message")
        if not isinstance(message, dict):
            return
        if entry.get("type") == "user":
            self._add_prompt(message.get("content"))
        elif entry.get("type") == "assistant":
            self._add_words(message.get("content"))

    def _add_prompt(self, content: object) -> None:
        for text in _texts(content):
            said = text.strip()
            if said and not said.startswith(_NOT_SAID):
                self.prompts.append(said)

    def _add_words(self, content: object) -> None:
        for text in _texts(content):
            self.ending = text.strip() or self.ending
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("name") in _EDITING:
                given = block.get("input")
                path = given.get("file_path") if isinstance(given, dict) else None
                if isinstance(path, str):
                    self.files[path] = None


def read_transcript(path: str) -> Transcript:
    """Read a transcript; of a long one its beginning and its end.

    Raises:
        OSError: It cannot be read, or is no file.
    """
    transcript = Transcript()
    for line in _lines(path):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict):
            transcript.add(entry)
    return transcript


def describe(transcript: Transcript, *, project: str, directory: str) -> str:
    """Return a record of a conversation in a few lines; "" if nobody said anything."""
    prompts = transcript.prompts
    if not prompts:
        return ""
    left_out = len(prompts) - _FIRST_PROMPTS - _LAST_PROMPTS
    is_long = left_out > 0
    shown = [*prompts[:_FIRST_PROMPTS], *prompts[-_LAST_PROMPTS:]] if is_long else prompts
    asked = [f"- {_short(text, _PROMPT_CHARS)}" for text in shown]
    if is_long:
        asked.insert(_FIRST_PROMPTS, f"- ({left_out} more)")
    day = transcript.first_at[:10]
    lines = [f"Conversation in {project}{f' on {day}' if day else ''}. The user asked:", *asked]
    if transcript.files:
        lines.append(f"Edited: {_named(transcript.files, directory)}")
    if transcript.ending:
        lines.append(f"It ended with: {_short(transcript.ending, _ENDING_CHARS)}")
    return "\n".join(lines)


def duration_ms(transcript: Transcript) -> float | None:
    """Return how long a conversation took, if its transcript says so."""
    from datetime import datetime

    try:
        first, last = (
            datetime.fromisoformat(at) for at in (transcript.first_at, transcript.last_at)
        )
        return max(0.0, (last - first).total_seconds() * 1000)
    except (ValueError, TypeError):
        return None


def _lines(path: str) -> "Iterator[bytes]":
    # A pipe would have us wait for whoever writes into it.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(f"{path} is not a file")
        if about.st_size <= _HEAD_BYTES + _TAIL_BYTES:
            yield from file.read(_HEAD_BYTES + _TAIL_BYTES).splitlines()
            return
        yield from file.read(_HEAD_BYTES).splitlines()[:-1]
        file.seek(about.st_size - _TAIL_BYTES)
        yield from file.read(_TAIL_BYTES).splitlines()[1:]


def _texts(content: object) -> "Iterator[str]":
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "text":
            text = block.get("text")
            if isinstance(text, str):
                yield text


def _short(text: str, most: int) -> str:
    """Return the beginning of a text on one line. Secrets go first: half of one is none we know."""
    line = " ".join(beginning_without_secrets(text, most).replace("\0", " ").split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def _named(files: "Iterable[str]", directory: str) -> str:
    inside = directory.rstrip(os.sep) + os.sep
    paths = list(files)
    more = f" and {len(paths) - _FILES} more" if len(paths) > _FILES else ""
    names = [_short(path.removeprefix(inside), _PATH_CHARS) for path in paths[:_FILES]]
    return ", ".join(names) + more
