"""A journal as a file: lines of JSON, sealed where a key is given. Pure.

Whoever wrote a file, what is read from it is clean and within bounds, or the file is refused whole.
"""

import json
import secrets
from typing import Any, Final, get_args

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from toolfold.errors import BadInput
from toolfold.memory.inputs import check_moment
from toolfold.memory.models import HASH_CHARS, Event, LinkKind, check_prefix
from toolfold.memory.sync.journal import (
    Entry,
    LinkKey,
    LinkState,
    Stage,
    State,
    StateName,
    SyncJournal,
    stage_id,
    stage_note,
)
from toolfold.memory.transfer.records import (
    MAX_LINE_BYTES,
    note_json,
    note_of,
    parse_line,
    read_record,
    write_record,
)

FORMAT: Final = "toolfold-sync"
VERSION: Final = 1
MIN_KEY_BYTES: Final = 32

_SEALED: Final = b"toolfold-sync sealed 1\n"
_NONCE_BYTES: Final = 12
_IDS_A_LINE: Final = 1_000
_NAMES: Final = {"live", "deleted", "archived"}


def write_journal(journal: SyncJournal, *, is_local: bool = False) -> bytes:
    """Return a journal as a file; the same journal always makes the same bytes.

    The numbers of notes stand in it only if it stays on this machine.
    """
    lines = [_dumped({"format": FORMAT, "version": VERSION})]
    for entry in journal.entries:
        links = [[*key, *state] for key, state in sorted(entry.links.items())]
        about: dict[str, Any] = {"type": "entry", "state": entry.state, "links": links}
        if is_local:
            about["numbers"] = entry.numbers
        lines.append(_dumped(about))
        for at, _, note in entry.chain:
            lines.append(_dumped({"type": "stage", "at": at, **note_json(note)}))
    purged = sorted(journal.purged)
    lines += [
        _dumped({"type": "purged", "ids": purged[start : start + _IDS_A_LINE]})
        for start in range(0, len(purged), _IDS_A_LINE)
    ]
    lines += [write_record(journal.events[name]) for name in sorted(journal.events)]
    lines.append(_dumped({"type": "end", "lines": len(lines)}))
    return "\n".join([*lines, ""]).encode("utf-8", "surrogatepass")


def read_journal(content: bytes) -> SyncJournal:
    """Return the journal that stands in a file.

    Raises:
        BadInput: It is not whole, of a newer version, or something in it cannot be used.
    """
    lines = content.splitlines()
    first = _line(lines[0]) if lines else {}
    if first.get("format") != FORMAT:
        raise BadInput("It is no journal of notes.")
    if first.get("version") != VERSION:
        raise BadInput("A newer toolfold wrote it. Update this one.")
    if len(lines) < 2 or _line(lines[-1]) != {"type": "end", "lines": len(lines) - 1}:
        raise BadInput("It is not whole.")
    journal = SyncJournal()
    for number, line in enumerate(lines[1:-1], start=2):
        try:
            _take(journal, _line(line))
        except (BadInput, KeyError, TypeError, ValueError) as error:
            raise BadInput(f"Line {number} cannot be used: {error}") from error
    if any(not entry.stages for entry in journal.entries):
        raise BadInput("A note in it says nothing.")
    return journal


def seal(content: bytes, key: bytes, place: str) -> bytes:
    """Return content that only who has the key can read or make, for one place."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return _SEALED + nonce + _cipher(key).encrypt(nonce, content, place.encode())


def unseal(content: bytes, key: bytes | None, place: str) -> bytes:
    """Return what is in a file, sealed or not.

    Raises:
        BadInput: It is sealed and no key is given, or another one; or it should be sealed.
    """
    if not content.startswith(_SEALED):
        if key is not None:
            raise BadInput("It is not encrypted, so anybody may have written it.")
        return content
    if key is None:
        raise BadInput("It is encrypted. Give the key with --key-file.")
    body = content[len(_SEALED) :]
    try:
        return _cipher(key).decrypt(body[:_NONCE_BYTES], body[_NONCE_BYTES:], place.encode())
    except (InvalidTag, ValueError) as error:
        raise BadInput("It was encrypted with another key, or changed since.") from error


def is_sealed(content: bytes) -> bool:
    """Tell whether a file is encrypted."""
    return content.startswith(_SEALED)


def _cipher(key: bytes) -> AESGCM:
    derive = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"toolfold memory sync")
    return AESGCM(derive.derive(key))


def _line(line: bytes) -> dict[str, Any]:
    if len(line) > MAX_LINE_BYTES:
        raise BadInput("A line in it is too long.")
    return parse_line(line)


def _take(journal: SyncJournal, value: dict[str, Any]) -> None:
    match value["type"]:
        case "entry":
            links = dict(map(_link, value["links"]))
            numbers = tuple(int(number) for number in value.get("numbers", ()))
            journal.entries.append(Entry({}, _state(*value["state"]), links, numbers))
        case "stage":
            note = stage_note(note_of(value))
            name = stage_id(note)
            journal.entries[-1].stages[name] = Stage(_moment(value["at"]), name, note)
        case "purged":
            journal.purged.update(map(_full_hash, value["ids"]))
        case "event":
            event = read_record(value)
            if isinstance(event, Event):
                journal.events[event.id] = event
        case other:
            raise BadInput(f"Its type is {str(other)[:60]!r}.")


def _link(value: list[Any]) -> tuple[LinkKey, LinkState]:
    kind, name, at, is_there = value
    if kind not in get_args(LinkKind) or not isinstance(is_there, bool):
        raise BadInput("A link is a kind, a hash, a time, and whether it is there.")
    return LinkKey(kind, _full_hash(name)), LinkState(_moment(at), is_there)


def _state(at: object, name: StateName) -> State:
    if name not in _NAMES:
        raise BadInput("A note is live, deleted or archived.")
    return State(_moment(at), name)


def _moment(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput("A time is a number.")
    found = check_moment(value, "time")
    assert found is not None  # noqa: S101  # only None has none
    return found


def _full_hash(value: object) -> str:
    found = check_prefix(value)
    if len(found) != HASH_CHARS:
        raise BadInput("A hash is cut off.")
    return found


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
