"""Machines with a memory each, which sync by way of a remote, and may crash while they do."""

import os
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fakes import FakeEmbedder
from stores import OpenBackend, open_sqlite

from toolfold.errors import BadInput, NotFound
from toolfold.memory.events.service import Events
from toolfold.memory.models import Event
from toolfold.memory.note_vectors import NoteVectorizer
from toolfold.memory.service import Memory
from toolfold.memory.sql.events import SqlEvents
from toolfold.memory.sql.replica import SqlReplica
from toolfold.memory.sync.journal import NoteRewrite, sight_of
from toolfold.memory.sync.models import KeptNotes, Synced
from toolfold.memory.sync.models import Machine as Place
from toolfold.memory.sync.service import Sync

NS = "project"


class Crash(Exception):
    """The process is gone."""


class Clock:
    """Moves on whenever it is asked."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


class CrashingReplica:
    """The real one, until it is told at which step to crash."""

    def __init__(self, replica: SqlReplica) -> None:
        self._replica = replica
        self.steps_left: int | None = None

    async def read(self, namespace: str) -> KeptNotes:
        self._step()
        return await self._replica.read(namespace)

    async def erased(self, numbers: Sequence[int]) -> set[int]:
        return await self._replica.erased(numbers)

    async def rewrite(
        self,
        namespace: str,
        rewrites: Sequence[NoteRewrite],
        events: Sequence[Event],
        *,
        now: float,
    ) -> list[int] | None:
        self._step()
        done = await self._replica.rewrite(namespace, rewrites, events, now=now)
        self._step()
        return done

    def _step(self) -> None:
        if self.steps_left is not None:
            self.steps_left -= 1
            if self.steps_left < 0:
                self.steps_left = None
                raise Crash


@dataclass
class Machine:
    memory: Memory
    events: Events
    replica: CrashingReplica
    service: Sync
    remote: str
    key_file: str = ""
    said: set[str] = field(default_factory=set)
    """Every content that was acknowledged here."""

    purged: set[str] = field(default_factory=set)
    """Every content that a note had which was purged here."""

    async def sync(self, **options: Any) -> Synced:
        return await self.service.sync(self.remote, **({"key_file": self.key_file} | options))

    async def dump(self) -> tuple[Any, ...]:
        """Return all that two machines have in common after a sync."""
        kept = await self.replica.read(NS)
        notes = [(sight_of(note), note.versions[-1].deleted) for note in kept.notes]
        return sorted(notes, key=lambda note: note[0].ids), sorted(kept.events)

    async def contents(self) -> set[str]:
        """Return what notes say or have said, as `history` shows it."""
        names = [each.versions[-1].hash for each in (await self.replica.read(NS)).notes]
        histories = [await self.memory._store.history(NS, name) for name in names]
        return {version.content for versions in histories for version in versions}

    async def says(self, content: str) -> bool:
        return content in await self.contents()

    async def edit(self, random: random.Random, words: int = 4000) -> None:
        """Change something, as people and agents do."""
        content = f"The {random.choice(('port', 'host', 'owner'))} is {random.randrange(words)}"
        kind = random.choices(
            ("store", "update", "tag", "delete", "restore", "supersede", "purge", "event"),
            (8, 8, 2, 3, 2, 2, 1, 1),
        )[0]
        try:
            await self._do(kind, content, random)
        except (BadInput, NotFound):
            return

    async def _do(self, kind: str, content: str, random: random.Random) -> None:
        kept = (await self.replica._replica.read(NS)).notes
        names = [note.versions[-1].hash for note in kept]
        name = random.choice(names) if names else ""
        if kind == "event":
            await self.events.record_event("deploy", content)
        elif kind == "store" or not name:
            await self.memory.store(content, [random.choice("abc")])
            self.said.add(content)
        elif kind == "update":
            await self.memory.update(name, content)
            self.said.add(content)
        elif kind == "tag":
            await self.memory.update(name, tags=[random.choice("abc")])
        elif kind == "supersede":
            await self.memory.supersede(name, random.choice(names))
        elif kind == "purge":
            [note] = [note for note in kept if note.versions[-1].hash == name]
            assert await self.memory.purge(name) == 1
            self.purged |= {version.content for version in note.versions}
        else:
            await getattr(self.memory, kind)(name)


@asynccontextmanager
async def running_machine(
    directory: Path,
    remote: Path | str,
    *,
    now: float = 1_794_744_000.0,
    open_backend: OpenBackend = open_sqlite,
) -> AsyncIterator[Machine]:
    directory.mkdir(exist_ok=True)
    clock = Clock(now)
    async with open_backend(directory) as (database, store):
        meaning = NoteVectorizer(store, FakeEmbedder())
        replica = CrashingReplica(SqlReplica(database))
        yield Machine(
            memory=Memory(store, meaning, namespace=NS, clock=clock),
            events=Events(SqlEvents(database), namespace=NS, clock=clock),
            replica=replica,
            service=Sync(
                replica,
                meaning,
                namespace=NS,
                machine=Place(directory / "sync", lambda: dict(os.environ)),
                clock=clock,
            ),
            remote=str(remote),
        )
