"""Read conversations as other programs export them: ChatGPT, Claude, Claude Code.

Each message becomes a note of its conversation, with its speaker and time. Files are read as
streams: of an export of any size, one conversation at a time is in memory. Nothing is unpacked.
"""

import json
import re
import zipfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from stat import S_ISLNK
from typing import IO, Any, Final, NamedTuple

from toolfold.errors import BadInput
from toolfold.memory.graph.models import Fault
from toolfold.memory.inputs import MAX_NAME_CHARS, check_moment, clean_content, clean_name
from toolfold.memory.models import Note, note_hash
from toolfold.memory.ranking.rank import estimated_quality
from toolfold.memory.transfer.models import Source
from toolfold.memory.transfer.records import MAX_LINE_BYTES, NoteRecord

MESSAGE_TYPE: Final = "message"

_CHUNK: Final = 1024 * 1024
_MAX_CONVERSATION: Final = 64 * 1024 * 1024
_MAX_TITLE_CHARS: Final = 200
_MAX_MEMBERS: Final = 100_000
_MAX_UNPACKED: Final = 16 * 1024**3
# Text in JSON is packed to a tenth, and repeats itself at most a few dozen times.
_MAX_RATIO: Final = 200
_ANY_RATIO_BYTES: Final = 10 * 1024 * 1024
_NAMES: Final = re.compile(r"(?:[^/]+/)?conversations(?:[-_ ]?\d+)?\.json")
_MARKS: Final = re.compile(rb'["\\{}\[\]]')
_INSIDE: Final = re.compile(rb'["\\]')
_MAX_DEPTH: Final = 200


class ConversationItem(NamedTuple):
    """A message or a fault, the number of its conversation, and how much was read by then."""

    line: int
    found: NoteRecord | Fault
    done: int


class _Message(NamedTuple):
    speaker: str
    text: str
    at: object


class _Conversation(NamedTuple):
    id: str
    title: str
    at: object
    messages: Iterable[_Message]


def tell_conversations(path: Path) -> Source | None:
    """Return whose conversations a zip or JSON file holds; None if it holds none.

    Raises:
        BadInput: It is a zip that is not to be read: too large, or made to harm.
    """
    for _, found, _ in _elements(path):
        value = _parsed(found)
        if isinstance(value, dict):
            return next((name for name, (is_one, _) in _READERS.items() if is_one(value)), None)
        return None
    return None


def is_transcript(line: Mapping[str, Any]) -> bool:
    """Tell whether a line of JSON is of a transcript of Claude Code."""
    return "sessionId" in line or (line.get("type") == "summary" and "leafUuid" in line)


def measure_conversations(path: Path) -> int:
    """Return how many bytes there are to read."""
    if not zipfile.is_zipfile(path):
        return path.stat().st_size
    with _opened_zip(path) as archive:
        return sum(member.file_size for member in _members(archive))


def read_conversations(
    path: Path, source: Source, *, now: float
) -> Generator[ConversationItem, None, None]:
    """Give the messages of an export of ChatGPT or Claude, conversation by conversation."""
    is_one, read = _READERS[source]
    for number, found, done in _elements(path):
        value = _parsed(found)
        if not isinstance(value, dict) or not is_one(value):
            yield ConversationItem(number, Fault(number, "It is not a conversation."), done)
            continue
        try:
            yield from _notes(read(value), source, number, done, now)
        except (TypeError, ValueError, AttributeError, LookupError) as error:
            reason = f"This conversation is not as {source} writes it: {error}."
            yield ConversationItem(number, Fault(number, reason[:300]), done)


def read_transcript(
    lines: Iterable[tuple[int, bytes | None, int]], *, now: float
) -> Iterator[ConversationItem]:
    """Give the messages of a transcript of Claude Code; what tools said is left out."""
    places: dict[str, int] = {}
    for number, line, done in lines:
        value = _parsed(line)
        if not isinstance(value, dict):
            yield ConversationItem(number, Fault(number, "It is not a line of a transcript."), done)
            continue
        said = _transcript_message(value)
        if said is not None:
            session = str(value.get("sessionId"))
            place = places[session] = places.get(session, -1) + 1
            whole = _Conversation(session, str(value.get("cwd") or ""), said.at, [said])
            yield from _notes(whole, "claude-code", number, done, now, start=place)


def _notes(
    conversation: _Conversation, source: Source, number: int, done: int, now: float, start: int = 0
) -> Iterator[ConversationItem]:
    thread = f"{source}:{conversation.id}"[:MAX_NAME_CHARS]
    for place, message in enumerate(conversation.messages, start=start):
        if message.text.strip():
            try:
                note = _note(message, conversation, (thread, place), source, now)
            except BadInput as error:
                yield ConversationItem(number, Fault(number, str(error)), done)
            else:
                yield ConversationItem(number, NoteRecord(note), done)


def _note(
    message: _Message,
    conversation: _Conversation,
    at: tuple[str, int],
    source: Source,
    now: float,
) -> Note:
    thread, position = clean_name(at[0], "thread"), at[1]
    content = clean_content(f"{message.speaker}: {message.text.strip()}".replace("\0", ""))
    created = _moment(message.at) or _moment(conversation.at) or now
    title = conversation.title.strip()[:_MAX_TITLE_CHARS]
    return Note(
        content=content,
        hash=note_hash(content, thread=thread, position=position),
        type=MESSAGE_TYPE,
        metadata={"title": title} if title else {},
        source=source,
        thread=thread,
        position=position,
        quality=estimated_quality(content),
        created=created,
        updated=created,
        namespace="",
    )


def _moment(value: object) -> float | None:
    """Return a time as exports write it: in seconds, or as ISO 8601."""
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if isinstance(value, datetime | int | float) and not isinstance(value, bool):
            return check_moment(value, "created")
    except (ValueError, BadInput):
        pass
    return None


# ChatGPT keeps a tree, in which every change of a question is a branch; the last one counts.


def _is_chatgpt(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("mapping"), dict)


def _chatgpt(value: Mapping[str, Any]) -> _Conversation:
    nodes: Mapping[str, Any] = value["mapping"]
    path: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    place = value.get("current_node") or _last_leaf(nodes)
    while isinstance(place, str) and place in nodes and place not in seen:
        seen.add(place)
        path.append(nodes[place])
        place = nodes[place].get("parent")
    messages = [each["message"] for each in reversed(path) if each.get("message")]
    said = (_chatgpt_message(each) for each in messages)
    return _Conversation(
        str(value.get("conversation_id") or value.get("id") or value.get("create_time")),
        str(value.get("title") or ""),
        value.get("create_time"),
        [each for each in said if each is not None],
    )


def _last_leaf(nodes: Mapping[str, Any]) -> str | None:
    leaves = [name for name, node in nodes.items() if not node.get("children")]
    return leaves[-1] if leaves else None


def _chatgpt_message(message: Mapping[str, Any]) -> _Message | None:
    role = (message.get("author") or {}).get("role")
    content = message.get("content") or {}
    hidden = (message.get("metadata") or {}).get("is_visually_hidden_from_conversation")
    if role not in ("user", "assistant") or hidden:
        return None
    parts = content.get("parts") if content.get("content_type") != "code" else None
    texts = [part if isinstance(part, str) else _text_of(part) for part in parts or ()]
    text = "\n".join(filter(None, texts)) or str(content.get("result") or "")
    return _Message(role, text, message.get("create_time"))


def _is_claude(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("chat_messages"), list)


def _claude(value: Mapping[str, Any]) -> _Conversation:
    said = [
        _Message(
            "user" if each.get("sender") == "human" else "assistant",
            _claude_text(each),
            each.get("created_at"),
        )
        for each in value["chat_messages"]
    ]
    name, at = value.get("name"), value.get("created_at")
    return _Conversation(str(value.get("uuid") or at), str(name or ""), at, said)


def _claude_text(message: Mapping[str, Any]) -> str:
    parts = message.get("content")
    texts = [_text_of(part) for part in parts] if isinstance(parts, list) else []
    return "\n".join(filter(None, texts)) or str(message.get("text") or "")


def _text_of(part: object) -> str:
    """Return what a part of a message says; what a tool did, or a model thought, is not that."""
    if isinstance(part, dict) and part.get("type", "text") in ("text", "multimodal_text"):
        return str(part.get("text") or "")
    return ""


def _transcript_message(value: Mapping[str, Any]) -> _Message | None:
    if value.get("type") not in ("user", "assistant") or value.get("isMeta"):
        return None
    if value.get("isSidechain"):
        return None
    message = value.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    parts = [content] if isinstance(content, str) else content
    if not isinstance(parts, list):
        return None
    texts = (part if isinstance(part, str) else _text_of(part) for part in parts)
    text = "\n".join(filter(None, texts))
    return _Message(str(value["type"]), text, value.get("timestamp")) if text.strip() else None


_READERS: Final[
    Mapping[
        Source,
        tuple[Callable[[Mapping[str, Any]], bool], Callable[[Mapping[str, Any]], _Conversation]],
    ]
] = {"chatgpt": (_is_chatgpt, _chatgpt), "claude": (_is_claude, _claude)}


def _elements(path: Path) -> Iterator[tuple[int, bytes | None, int]]:
    """Give the number and bytes of each conversation, and how much was read; None: too long."""
    number = done = 0
    for stream in _streams(path):
        before = done
        for element, size in _split(stream):
            number, done = number + 1, before + size
            yield number, element, done


def _streams(path: Path) -> Iterator[IO[bytes]]:
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            yield file
        return
    with _opened_zip(path) as archive:
        for member in _members(archive):
            with archive.open(member) as file:
                yield file


@contextmanager
def _opened_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise BadInput(f"The zip {path} is damaged, or not one that we read: {error}.") from error


def _members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the files of conversations in a zip, once all of it looks harmless."""
    members = archive.infolist()
    if len(members) > _MAX_MEMBERS or sum(each.file_size for each in members) > _MAX_UNPACKED:
        raise BadInput("The zip is larger than any export. Nothing was read.")
    for each in members:
        if reason := _harm(each):
            raise BadInput(f"{each.filename[:100]!r} in the zip {reason}. Nothing was read.")
    found = sorted(
        (each for each in members if _NAMES.fullmatch(each.filename)),
        key=lambda each: each.filename,
    )
    if len({each.filename for each in found}) < len(found):
        raise BadInput("The zip contains two files of the same name. Nothing was read.")
    return found


def _harm(member: zipfile.ZipInfo) -> str:
    parts = re.split(r"[/\\]", member.filename)
    if ".." in parts or member.filename.startswith(("/", "\\")) or ":" in parts[0]:
        return "leads out of it"
    if S_ISLNK(member.external_attr >> 16):
        return "is a symbolic link"
    if member.flag_bits & 0x1:
        return "is encrypted"
    is_large = member.file_size > _ANY_RATIO_BYTES
    if is_large and member.file_size > _MAX_RATIO * max(1, member.compress_size):
        return "unpacks to far more than its size"
    return ""


class _ArraySplitter:
    """Parts a stream of JSON into the elements of its array, without parsing them.

    What stands between them is passed over.
    """

    def __init__(self) -> None:
        self._kept = bytearray()
        self._depth = 0
        self._size = 0
        self._is_text = False
        self._is_escaped = False
        self._is_huge = False

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes | None, int]]:
        """Give the elements that end here, each with the bytes up to its end; None: too long."""
        start = 0
        for mark, begin, end in self._marks(chunk):
            if mark in b"{[":
                self._depth += 1
                start = begin if self._depth == 2 else start
                if self._depth > _MAX_DEPTH:
                    raise BadInput("The file is nested deeper than any conversation.")
            else:
                self._depth -= 1
                if self._depth == 1:
                    self._keep(chunk[start:end])
                    yield (None if self._is_huge else bytes(self._kept)), self._size + end
                    self._kept.clear()
                    self._is_huge = False
        if self._depth > 1:
            self._keep(chunk[start:])
        self._size += len(chunk)

    def _marks(self, chunk: bytes) -> Iterator[tuple[bytes, int, int]]:
        """Give the brackets that stand in no text."""
        at, self._is_escaped = int(self._is_escaped), False
        while found := (_INSIDE if self._is_text else _MARKS).search(chunk, at):
            mark, at = found.group(), found.end()
            if mark == b'"':
                self._is_text = not self._is_text
            elif mark != b"\\":
                yield mark, found.start(), at
            elif self._is_text:
                at += 1
                self._is_escaped = at > len(chunk)  # by the end of this chunk

    def _keep(self, part: bytes) -> None:
        self._is_huge = self._is_huge or len(self._kept) + len(part) > _MAX_CONVERSATION
        if not self._is_huge:
            self._kept += part


def _split(stream: IO[bytes]) -> Iterator[tuple[bytes | None, int]]:
    splitter = _ArraySplitter()
    while chunk := stream.read(_CHUNK):
        yield from splitter.feed(chunk)


def _parsed(found: bytes | None) -> object:
    if found is None or len(found) > max(_MAX_CONVERSATION, MAX_LINE_BYTES):
        return None
    try:
        return json.loads(found)
    except (ValueError, RecursionError):
        return None
