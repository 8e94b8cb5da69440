"""What is kept under one name moves under another, and nothing of it is lost."""

from pathlib import Path

import pytest
from stores import BACKENDS, OpenBackend
from worlds import World, running_world

from toolfold.errors import NotFound

pytestmark = pytest.mark.parametrize("open_backend", BACKENDS)


async def fill(world: World, word: str) -> str:
    name = await world.memory.store(f"The {word} port is 8080", [word])
    await world.memory.update(name, f"The {word} port is 9090")
    await world.memory.delete(await world.memory.store(f"{word} is gone"))
    await world.events.record_event("deploy", word)
    await world.graph.create_entity(word, "service", ["listens"])
    return name


async def test_where_nothing_was_all_of_it_has_the_name(
    tmp_path: Path, open_backend: OpenBackend
) -> None:
    async with running_world(tmp_path, namespace="api-3f9a", open_backend=open_backend) as old:
        name = await fill(old, "api")
        before = await old.exported()

    async with running_world(
        tmp_path, namespace="example.org/api", open_backend=open_backend
    ) as new:
        await new.transfer.move_in("api-3f9a")
        await new.transfer.move_in("api-3f9a")

        assert await new.exported() == before
        assert [note.content for note in await new.memory.history(name)] == [
            "The api port is 8080",
            "The api port is 9090",
        ]
        assert (await new.memory.search("api port")).total == 1

    async with running_world(tmp_path, namespace="api-3f9a", open_backend=open_backend) as old:
        assert (await old.memory.health()).count == 0


async def test_where_something_was_both_are_together_and_the_old_is_kept(
    tmp_path: Path, open_backend: OpenBackend
) -> None:
    async with running_world(tmp_path, namespace="a-1", open_backend=open_backend) as first:
        one = await fill(first, "first")
        await first.memory.store("Both say this", ["first"])
        kept = await first.exported()
    async with running_world(tmp_path, namespace="r", open_backend=open_backend) as world:
        two = await fill(world, "second")
        await world.memory.store("Both say this", ["second"])
        await world.transfer.move_in("a-1")
        await world.transfer.move_in("a-1")

        assert (await world.memory.health()).count == 3
        assert {len(await world.memory.history(name)) for name in (one, two)} == {2}
        both = (await world.memory.search("Both say this")).memories[0]
        assert set(both.tags) == {"first", "second"}
        assert (await world.events.recall_events()).total == 2
        names = {each["name"] for each in (await world.graph.read_graph())["entities"]}
        assert names == {"first", "second"}
        assert (await world.memory.search("first port", limit=1)).memories[0].hash == (
            await world.memory.get(one)
        ).hash[:8]
        await world.memory.until_ready()

    async with running_world(tmp_path, namespace="a-1 (moved 1)", open_backend=open_backend) as old:
        assert await old.exported() == kept


async def test_what_is_stored_under_the_old_name_again_moves_again(
    tmp_path: Path, open_backend: OpenBackend
) -> None:
    for number in range(3):
        async with running_world(tmp_path, namespace="a-1", open_backend=open_backend) as old:
            await old.memory.store(f"Note {number}")
        async with running_world(tmp_path, namespace="r", open_backend=open_backend) as world:
            await world.transfer.move_in("a-1")
            assert (await world.memory.health()).count == number + 1


async def test_a_name_under_which_nothing_was_kept_changes_nothing(
    tmp_path: Path, open_backend: OpenBackend
) -> None:
    async with running_world(tmp_path, namespace="r", open_backend=open_backend) as world:
        await world.transfer.move_in("a-1")

        with pytest.raises(NotFound):
            await world.memory.get("abcd")
        assert (await world.memory.health()).count == 0
