"""Two machines have the same notes after a sync, and nothing that was stored is lost."""

import random
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest
from machines import Crash, Machine, running_machine
from stores import BACKENDS, OpenBackend

from toolfold.errors import BadInput, NotFound, StoreError
from toolfold.memory.models import note_hash

Pair = tuple[Machine, Machine]


@pytest.fixture(params=["folder", "git"])
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    place = tmp_path / "remote"
    place.mkdir()
    if request.param == "git":
        subprocess.run(["git", "init", "--quiet", "--bare", str(place)], check=True)
    return place


@pytest.fixture
async def pair(tmp_path: Path, remote: Path) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        one, two = [
            await stack.enter_async_context(running_machine(tmp_path / name, remote))
            for name in ("one", "two")
        ]
        yield one, two


async def meet(*machines: Machine) -> None:
    for machine in (*machines, *machines[:-1]):
        await machine.sync()


async def test_what_one_stores_the_other_finds(pair: Pair) -> None:
    one, two = pair
    name = await one.memory.store("Staging runs on port 5433", ["db"], metadata={"who": "Ada"})
    await one.events.record_event("deploy", "release 3")

    sent = await one.sync()
    received = await two.sync()

    assert (sent.sent, sent.received, received.received, received.events) == (1, 0, 1, 1)
    assert (await two.memory.search("staging port")).memories[0].hash == name
    assert (await two.memory.get(name)).metadata == {"who": "Ada"}
    assert (await two.memory.get(name)).tags == ("db",)
    assert (await two.events.recall_events()).total == 1
    assert await one.dump() == await two.dump()


async def test_a_sync_with_nothing_new_changes_nothing(pair: Pair, remote: Path) -> None:
    one, two = pair
    await one.memory.store("A fact")
    await meet(one, two)
    before = {path: path.read_bytes() for path in remote.rglob("*") if path.is_file()}

    again = await two.sync()

    assert (again.received, again.sent, again.purged, again.events) == (0, 0, 0, 0)
    assert {path: path.read_bytes() for path in remote.rglob("*") if path.is_file()} == before


async def test_of_a_note_changed_on_both_sides_the_later_counts_and_the_other_is_kept(
    pair: Pair,
) -> None:
    one, two = pair
    name = await one.memory.store("The port is 1")
    await meet(one, two)
    await one.memory.update(name, "The port is 2")
    two.memory._clock.now += 1000  # type: ignore[attr-defined]
    await two.memory.update(name, "The port is 3")

    await one.sync()
    synced = await two.sync()
    await one.sync()

    assert synced.conflicts == (note_hash("The port is 3")[:8],)
    assert "Changed on both sides" in repr(synced)
    for machine in pair:
        assert (await machine.memory.search("port")).total == 1
        versions = await machine.memory.history(name)
        assert [each.content for each in versions] == [f"The port is {n}" for n in (1, 2, 3)]
        assert (await machine.memory.get(note_hash("The port is 2"))).content == "The port is 3"


async def test_the_same_note_of_both_is_one(pair: Pair) -> None:
    one, two = pair
    name = await one.memory.store("Ada owns the parser", ["a"])
    two.memory._clock.now += 7  # type: ignore[attr-defined]
    await two.memory.store("Ada owns the parser", ["b"])

    await meet(one, two)

    assert await one.dump() == await two.dump()
    assert (await one.memory.health()).count == 1
    assert len(await one.memory.history(name)) == 2


async def test_two_notes_that_come_to_say_the_same_are_one(pair: Pair) -> None:
    one, two = pair
    first, second = await one.memory.store("First"), await one.memory.store("Second")
    await meet(one, two)
    await one.memory.update(first, "Same")
    await two.memory.update(second, "Same")

    await meet(one, two)

    assert await one.dump() == await two.dump()
    for machine in pair:
        assert (await machine.memory.health()).count == 1
        assert all([await machine.says(each) for each in ("First", "Second", "Same")])


async def test_deleting_restoring_and_superseding_reach_the_other(pair: Pair) -> None:
    one, two = pair
    older, newer = await one.memory.store("The port is 1"), await one.memory.store("A port of 2")
    await meet(one, two)

    await one.memory.delete(older)
    await meet(one, two)
    with pytest.raises(NotFound):
        await two.memory.get(older)
    await two.memory.restore(older)
    await meet(two, one)
    assert (await one.memory.get(older)).content == "The port is 1"

    await one.memory.supersede(older, newer)
    await meet(one, two)
    assert ((await two.memory.get(older)).superseded_by or "")[:8] == newer
    await two.memory.reinstate(older)
    await meet(two, one)
    assert (await one.memory.get(older)).superseded_by is None
    assert await one.dump() == await two.dump()


async def test_what_is_purged_is_gone_everywhere_and_does_not_come_back(
    pair: Pair, tmp_path: Path
) -> None:
    one, two = pair
    name = await one.memory.store("The password is swordfish")
    await meet(one, two)
    await one.memory.purge(name)

    await meet(one, two)

    for machine, place in zip(pair, ("one", "two"), strict=True):
        assert (await machine.memory.health()).count == 0
        assert not await machine.says("The password is swordfish")
        for path in (tmp_path / place).rglob("*.journal"):
            assert b"swordfish" not in path.read_bytes()
    assert (await two.sync()).received == 0
    await one.memory.store("The password is swordfish")  # said again, it is there again
    await meet(one, two)
    assert await two.says("The password is swordfish")


async def test_a_change_that_the_purger_has_not_seen_stays(pair: Pair) -> None:
    one, two = pair
    name = await one.memory.store("The port is 1")
    await meet(one, two)
    await two.memory.update(name, "The port is 2")
    await one.memory.purge(name)

    await meet(one, two)

    assert await one.dump() == await two.dump()
    assert await one.says("The port is 2")
    assert not await two.says("The port is 1")


async def test_a_change_that_a_crash_kept_from_the_purger_stays(pair: Pair) -> None:
    one, two = pair
    name = await one.memory.store("The port is 1")
    await meet(one, two)
    await one.memory.update(name, "The port is 2")
    await one.sync()
    two.replica.steps_left = 1  # it has read of the change, and not yet written it
    with pytest.raises(Crash):
        await two.sync()
    await two.memory.purge(name)

    await meet(two, one)

    assert await one.dump() == await two.dump()
    assert await one.contents() == {"The port is 2"}


async def test_a_machine_whose_store_is_lost_gets_its_notes_back(
    pair: Pair, tmp_path: Path, remote: Path
) -> None:
    one, two = pair
    for number in range(5):
        await one.memory.store(f"Fact {number}")
    await meet(one, two)
    (tmp_path / "three").mkdir()
    (tmp_path / "one/sync").rename(tmp_path / "three/sync")  # all but the store is left

    async with running_machine(tmp_path / "three", remote) as three:
        synced = await three.sync()

        assert (synced.received, synced.purged) == (5, 0)
        await two.sync()
        assert await three.dump() == await two.dump()


async def test_links_follow_what_another_machine_has_changed(pair: Pair) -> None:
    one, two = pair
    older = await one.memory.store("The port is 1")
    newer = await one.memory.store("Now the port is 2", supersedes=older)
    await meet(one, two)
    await one.memory.update(older, "The port was 1")
    await two.memory.update(newer, "The port is 2 now")

    await meet(one, two, one)

    assert await one.dump() == await two.dump()
    for machine in pair:
        assert (await machine.memory.get(older)).superseded_by == note_hash("The port is 2 now")


async def test_a_clock_that_was_set_back_does_not_undo_an_edit(pair: Pair) -> None:
    one, two = pair
    name = await one.memory.store("The port is 1")
    one.memory._clock.now -= 100_000  # type: ignore[attr-defined]
    await one.memory.update(name, "The port is 2")

    await meet(one, two)

    for machine in pair:
        assert (await machine.memory.get(name)).content == "The port is 2"


async def test_documents_stay_on_the_machine_whose_files_they_are(pair: Pair) -> None:
    one, two = pair
    await one.memory.store("A chunk", memory_type="document", thread="/a/file", position=0)

    await meet(one, two)

    assert (await two.memory.health()).count == 0


async def test_with_a_key_nothing_can_be_read_and_nothing_be_slipped_in(
    pair: Pair, tmp_path: Path, remote: Path
) -> None:
    one, two = pair
    key, other = tmp_path / "key", tmp_path / "other"
    key.write_bytes(bytes(range(32)))
    other.write_bytes(bytes(range(1, 33)))
    one.key_file = two.key_file = str(key)
    await one.memory.store("The port is swordfish")
    await meet(one, two)

    assert await two.says("The port is swordfish")
    assert await one.dump() == await two.dump()
    for path in remote.rglob("*"):
        assert not path.is_file() or b"swordfish" not in path.read_bytes()
    for wrong in (str(other), ""):
        with pytest.raises(BadInput, match="encrypted"):
            await two.sync(key_file=wrong)
    assert await one.dump() == await two.dump()


@pytest.mark.parametrize("spoil", ["key", "short", "missing"])
async def test_a_key_file_that_cannot_be_used_is_named(
    pair: Pair, tmp_path: Path, spoil: str
) -> None:
    path = {"key": "key", "short": str(tmp_path / "key"), "missing": str(tmp_path / "none")}[spoil]
    (tmp_path / "key").write_bytes(b"short")

    with pytest.raises(BadInput, match="key"):
        await pair[0].sync(key_file=path)


SPOILED: list[Callable[[bytes], bytes]] = [
    lambda content: content[: len(content) // 2],
    lambda content: content.replace(b'"quality":0.', b'"quality":7.'),
    lambda content: content.replace(b"secret", b"public"),
    lambda content: content.replace(b'"version":1}', b'"version":9}', 1),
    lambda content: b"[" * 100_000,
    lambda content: b"",
]


@pytest.mark.parametrize("remote", ["folder"], indirect=True)
@pytest.mark.parametrize("spoil", SPOILED)
async def test_a_file_that_is_spoiled_is_left_out_whole(
    pair: Pair, remote: Path, spoil: Callable[[bytes], bytes]
) -> None:
    one, two = pair
    await one.memory.store("A secret")
    await one.sync()
    [path] = remote.rglob("*.journal")
    path.write_bytes(spoil(path.read_bytes()))

    with pytest.raises(BadInput, match="Nothing in the remote can be read"):
        await two.sync()
    assert (await two.memory.health()).count == 0


@pytest.mark.parametrize("remote", ["folder"], indirect=True)
async def test_copies_in_conflict_and_links_out_of_the_folder(
    pair: Pair, remote: Path, tmp_path: Path
) -> None:
    one, two = pair
    await one.memory.store("Only in the copy")
    await one.sync()
    [path] = remote.rglob("*.journal")
    path.rename(path.with_name("x (conflicted copy).journal"))
    (tmp_path / "outside").write_text("secret")
    path.with_name("link.journal").symlink_to(tmp_path / "outside")

    synced = await two.sync()

    assert (synced.received, synced.unreadable) == (1, ())


@pytest.mark.parametrize("remote", ["folder"], indirect=True)
async def test_a_folder_that_is_not_there_is_not_made(pair: Pair, remote: Path) -> None:
    remote.rmdir()

    for wrong in (str(remote), "notes", "ext::sh -c evil"):
        with pytest.raises((BadInput, StoreError)):
            await pair[0].service.sync(wrong)
    assert not remote.exists()


async def test_an_address_that_leads_nowhere_is_a_clear_error(pair: Pair, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="git ls-remote failed"):
        await pair[0].service.sync(f"file://{tmp_path}/nowhere.git")


async def edit_and_crash(
    machines: tuple[Machine, ...], dice: random.Random, edits: int, *, crash: float = 0.5
) -> None:
    """Edit on all sides, syncing now and then and crashing in some of those."""
    for number in range(edits):
        machine = dice.choice(machines)
        await machine.edit(dice)
        if dice.random() < min(1.0, 30 / edits) or number == edits - 1:
            machine = dice.choice(machines)
            machine.replica.steps_left = dice.randrange(4) if dice.random() < crash else None
            with suppress(Crash):
                await machine.sync()
            machine.replica.steps_left = None


async def check_equal(machines: tuple[Machine, ...]) -> None:
    await meet(*machines, *machines)
    dumps = [await machine.dump() for machine in machines]
    assert all(dump == dumps[0] for dump in dumps)
    purged = set[str]().union(*(machine.purged for machine in machines))
    said = set[str]().union(*(machine.said for machine in machines)) - purged
    assert len(said) > len(purged)
    for machine in machines:
        assert said - await machine.contents() == set()


@pytest.mark.parametrize("remote", ["folder"], indirect=True)
@pytest.mark.parametrize("seed", range(6))
async def test_after_random_edits_and_crashes_all_are_equal_and_nothing_is_lost(
    tmp_path: Path, remote: Path, seed: int
) -> None:
    dice = random.Random(seed)
    async with AsyncExitStack() as stack:
        machines = tuple(
            [
                await stack.enter_async_context(
                    running_machine(
                        tmp_path / str(number), remote, now=1.7e9 + number * dice.uniform(-50, 50)
                    )
                )
                for number in range(2 + seed % 2)
            ]
        )
        await edit_and_crash(machines, dice, 120)
        await check_equal(machines)


@pytest.mark.parametrize("remote", ["folder"], indirect=True)
@pytest.mark.parametrize("open_backend", BACKENDS)
async def test_every_store_syncs_with_every_other(
    tmp_path: Path, remote: Path, open_backend: OpenBackend
) -> None:
    dice = random.Random(7)
    async with (
        running_machine(tmp_path / "a", remote, open_backend=open_backend) as one,
        running_machine(tmp_path / "b", remote) as two,
    ):
        await edit_and_crash((one, two), dice, 60)
        await check_equal((one, two))


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("remote", ["folder", "git"], indirect=True)
async def test_ten_thousand_edits_with_crashes(tmp_path: Path, remote: Path) -> None:
    dice = random.Random(27)
    async with (
        running_machine(tmp_path / "a", remote) as one,
        running_machine(tmp_path / "b", remote, now=1.7e9) as two,
    ):
        await edit_and_crash((one, two), dice, 10_000)
        await check_equal((one, two))
