"""The memory of every namespace: opened once, for all who ask at once; vectors follow changes."""

import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from fakes import FakeEmbedder
from memories import running_memory

from toolfold.embedding import Vectors
from toolfold.errors import BadInput, NotFound, StoreError
from toolfold.memory.memories import Memories, RequestContext


class _Notes:
    def __init__(self, namespace: str) -> None:
        self.namespace = namespace

    async def health(self) -> str:
        return self.namespace


class _Services:
    def __init__(self, namespace: str) -> None:
        self.notes = _Notes(namespace)


class Opening:
    """A store that opens when it is let, and fails as often as it is told to."""

    def __init__(self, *, failures: int = 0) -> None:
        self.failures = failures
        self.times = 0
        self.let = anyio.Event()

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[Callable[..., Any]]:
        self.times += 1
        await self.let.wait()
        if self.failures:
            self.failures -= 1
            raise StoreError("The disk is gone.")
        yield lambda place: _Services(place.namespace)


@pytest.fixture(autouse=True)
def plain_verbs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have `health` be that of the notes above."""
    from toolfold.memory import memories
    from toolfold.memory.verbs import VERBS

    health = VERBS["memory.health"]
    values = {name: getattr(health, name) for name in health.__slots__}
    verb = type(health)(**{**values, "method": _Notes.health})
    monkeypatch.setattr(memories, "VERBS", {**VERBS, "memory.health": verb})


async def test_all_who_ask_while_the_store_is_opened_are_answered() -> None:
    opening, answers = Opening(), []
    memories = Memories(opening)

    async def ask(namespace: str) -> None:
        answers.append(await memories.call(RequestContext(namespace), "memory.health", {}))

    with anyio.fail_after(60):
        async with memories.running(), anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(ask, f"n{number}")
            await anyio.wait_all_tasks_blocked()
            opening.let.set()

    assert sorted(answers) == [f"n{number}" for number in range(5)]
    assert opening.times == 1


async def test_all_who_asked_are_told_why_it_does_not_open_and_the_next_tries_again() -> None:
    opening, told = Opening(failures=1), []
    memories = Memories(opening)

    async def ask() -> None:
        try:
            await memories.call(RequestContext("n"), "memory.health", {})
        except StoreError as error:
            told.append(str(error))

    with anyio.fail_after(60):
        async with memories.running():
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(ask)
                await anyio.wait_all_tasks_blocked()
                opening.let.set()
            later = await memories.call(RequestContext("n"), "memory.health", {})

    assert told == ["The disk is gone."] * 3
    assert (later, opening.times) == ("n", 2)


@pytest.mark.parametrize(
    ("path", "arguments", "kind"),
    [
        ("memory.dream", {}, NotFound),
        ("memory.health", {"loud": True}, BadInput),
        ("memory.health", {"self": 1}, BadInput),
        ("memory.ingest", {"path": "x", "progress": 1}, BadInput),
    ],
)
async def test_what_no_verb_takes_is_refused_before_the_store_is_opened(
    path: str, arguments: dict[str, Any], kind: type[Exception]
) -> None:
    opening = Opening()
    memories = Memories(opening)
    async with memories.running():
        with anyio.fail_after(60), pytest.raises(kind):
            await memories.call(RequestContext("n"), path, arguments)

    assert opening.times == 0


class SlowEmbedder(FakeEmbedder):
    """Stops at a text until it is let go on."""

    def __init__(self, stops_at: str) -> None:
        super().__init__()
        self._stops_at = stops_at
        self.has_stopped = threading.Event()
        self.let = threading.Event()

    def embed(self, texts: Sequence[str]) -> Vectors:
        if self._stops_at in texts:
            self.has_stopped.set()
            assert self.let.wait(60)
        return super().embed(texts)


async def test_a_note_that_changes_while_it_is_embedded_is_embedded_again_at_once(
    tmp_path: Path,
) -> None:
    embedder = SlowEmbedder("the port is 5433")
    async with running_memory(tmp_path, embedder) as memory:
        with anyio.fail_after(60):
            name = await memory.store("the port is 5433")
            assert await anyio.to_thread.run_sync(embedder.has_stopped.wait, 20)
            await memory.update(name, "the port is 5434")
            embedder.let.set()
            await memory.until_ready()

        assert (await memory.health()).ready
