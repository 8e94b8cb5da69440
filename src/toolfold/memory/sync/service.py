"""Bring the notes of a namespace in line with those of other machines."""

import hashlib
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from toolfold.errors import BadInput, ConfigError, StoreError
from toolfold.memory.inputs import clean_name
from toolfold.memory.models import shown
from toolfold.memory.note_vectors import NoteVectorizer
from toolfold.memory.registry import verb
from toolfold.memory.sync.files import (
    MIN_KEY_BYTES,
    read_journal,
    seal,
    unseal,
    write_journal,
)
from toolfold.memory.sync.journal import (
    SyncJournal,
    conflicts,
    merge,
    plan,
    scan,
)
from toolfold.memory.sync.models import KeptNotes, Machine, Replica, Synced
from toolfold.memory.sync.remotes import SUFFIX, SyncRemote, open_remote
from toolfold.storage.files import locked, make_private, read_file, replace_file

_ROUNDS: Final = 8
_MAX_SHOWN: Final = 20


class Sync:
    """Syncs the notes and events of one namespace with those that a remote holds."""

    def __init__(
        self,
        replica: Replica,
        meaning: NoteVectorizer,
        *,
        namespace: str,
        machine: Machine,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._replica = replica
        self._meaning = meaning
        self._namespace = clean_name(namespace, "namespace")
        self._machine = machine
        self._clock = clock

    @verb("changes", is_for_users=True, is_command=False)
    async def sync(self, remote: str, key_file: str = "") -> Synced:
        """Share notes with other machines by a folder or a git repository.

        Each machine leaves a file there with all versions of its notes, and takes in those of the
        others. Of a note that was changed on both sides the later version counts, and `history`
        shows the other. What is deleted, restored or purged here is so everywhere. Events are
        shared too; documents, the graph and consolidations are not.

        With `key_file`, which holds at least 32 random bytes and is the same on every machine,
        the files are encrypted.
        """
        key = await anyio.to_thread.run_sync(_read_key, key_file) if key_file else None
        name = f"{self._namespace}\0{remote}"
        place = self._machine.directory / hashlib.sha256(name.encode()).hexdigest()[:16]
        await anyio.to_thread.run_sync(make_private, place)
        opened = open_remote(remote, self._namespace, place, self._machine.environ())
        with _alone(place):
            state = _SyncState(place)
            for _ in range(_ROUNDS):
                synced = await self._round(remote, opened, state, key)
                if synced is not None:
                    return synced
        raise StoreError("Notes changed at every attempt, here or there. Sync again later.")

    async def _round(
        self, remote: str, opened: SyncRemote, state: "_SyncState", key: bytes | None
    ) -> Synced | None:
        """Sync once; None if something has changed meanwhile."""
        found, unreadable = _read_all(await opened.read(), key, self._namespace)
        theirs = merge(found)
        kept = await self._replica.read(self._namespace)
        mine = await self._scan(kept, state.known())
        merged = merge([mine, theirs])
        await anyio.to_thread.run_sync(state.begin, merged)
        rewrites = list(plan(kept.notes, merged))
        events = [each for name, each in merged.events.items() if name not in kept.events]
        keys = await self._replica.rewrite(self._namespace, rewrites, events, now=self._clock())
        if keys is None:
            return None
        await anyio.to_thread.run_sync(state.finish, merged)
        self._meaning.want(keys)
        after = await self._scan(await self._replica.read(self._namespace), state.known())
        await anyio.to_thread.run_sync(state.finish, after)
        if not await self._send(opened, state.name, after, key):
            return None
        known = theirs.by_stage()
        return Synced(
            remote=remote,
            received=sum(each.entry is not None for each in rewrites),
            purged=sum(each.entry is None for each in rewrites),
            events=len(events),
            sent=sum(not known.keys() >= entry.stages.keys() for entry in after.entries),
            conflicts=tuple(
                shown(each.present.note.hash) for each in conflicts(mine, theirs, merged)
            )[:_MAX_SHOWN],
            unreadable=tuple(unreadable),
        )

    async def _scan(self, kept: KeptNotes, known: Sequence[SyncJournal]) -> SyncJournal:
        numbers = {number for each in known for entry in each.entries for number in entry.numbers}
        gone = sorted(numbers - {note.number for note in kept.notes})
        erased = await self._replica.erased(gone)
        found = scan(kept.notes, known, erased=erased, now=self._clock())
        found.events = dict(kept.events)
        return found

    async def _send(
        self, opened: SyncRemote, name: str, journal: SyncJournal, key: bytes | None
    ) -> bool:
        content = write_journal(journal)
        if key is not None:
            content = seal(content, key, self._namespace)
        return await opened.write(name, content)


class _SyncState:
    """What this machine remembers of a remote."""

    def __init__(self, place: Path) -> None:
        self._last = place / "last.journal"
        self._pending = place / "pending.journal"
        name = place / "name"
        if not name.exists():
            replace_file(name, secrets.token_hex(8).encode())
        self.name = name.read_text() + SUFFIX

    def known(self) -> list[SyncJournal]:
        """Return what was known after the last sync, and what was about to be in a broken one."""
        files = (self._pending, self._last)
        contents = [read_file(path, max_bytes=None) for path in files]
        return [read_journal(content) for content in contents if content is not None]

    def begin(self, merged: SyncJournal) -> None:
        """Remember what the store is about to hold.

        No numbers of notes stand there: who purges a note has not seen what was not yet written.
        """
        replace_file(self._pending, write_journal(merged))

    def finish(self, journal: SyncJournal) -> None:
        """Remember what it holds."""
        replace_file(self._last, write_journal(journal, is_local=True))
        self._pending.unlink(missing_ok=True)


def _read_all(
    files: Mapping[str, bytes], key: bytes | None, namespace: str
) -> tuple[list[SyncJournal], list[str]]:
    """Return the journals of all machines, and of files that cannot be used why not.

    Raises:
        BadInput: None of them can be read with this key: it is not the others' key.
    """
    journals, unreadable = [], []
    for name, content in files.items():
        try:
            journals.append(read_journal(unseal(content, key, namespace)))
        except BadInput as error:
            unreadable.append(f"{name}: {error}")
    if unreadable and not journals:
        raise BadInput(f"Nothing in the remote can be read. {unreadable[0]}")
    return journals, unreadable


def _read_key(path: str) -> bytes:
    place = Path(path).expanduser()
    if not place.is_absolute():
        raise BadInput(f"{path!r} is not a whole path. Give the whole path of the key file.")
    try:
        content = read_file(place)
    except ConfigError as error:
        raise BadInput(f"The key file {path} {error}.") from error
    if content is None:
        raise BadInput(f"There is no key file {path}. Make one: head -c 32 /dev/urandom > {path}")
    if len(content) < MIN_KEY_BYTES:
        raise BadInput(f"The key file {path} is too short. It needs {MIN_KEY_BYTES} random bytes.")
    return content


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Have no other process sync with the same remote meanwhile."""
    try:
        with locked(place / "sync", patience_s=0):
            yield
    except TimeoutError as error:
        raise StoreError("Another sync with this remote is running. Wait for it to end.") from error
