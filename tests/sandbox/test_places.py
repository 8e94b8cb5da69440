"""Places are shared out among callers in turn, and some are left for the local user."""

import anyio
import pytest

from toolfold.sandbox.files import Places


class Turns:
    """Callers who hold places until they are told to leave, in the order in which they got one."""

    def __init__(self, count: int) -> None:
        self.places = Places(count)
        self.got: list[str] = []
        self.done: dict[str, anyio.Event] = {}

    async def hold(self, name: str, *, is_remote: bool = False) -> None:
        self.done[name] = anyio.Event()
        async with self.places.held(name[0], is_remote=is_remote):
            self.got.append(name)
            await self.done[name].wait()

    async def leave(self, name: str) -> None:
        self.done[name].set()
        await anyio.wait_all_tasks_blocked()


async def test_who_waits_comes_in_turn_with_other_callers() -> None:
    turns = Turns(1)
    async with anyio.create_task_group() as tasks:
        for name in ("a1", "a2", "a3", "a4", "b1", "b2", "c1"):
            tasks.start_soon(turns.hold, name)
        await anyio.wait_all_tasks_blocked()
        for _ in range(6):
            await turns.leave(turns.got[-1])
        await turns.leave(turns.got[-1])

    assert turns.got == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]


@pytest.mark.parametrize(("count", "most"), [(8, 6), (4, 3), (2, 1)])
async def test_holders_of_keys_leave_places_for_the_local_user(count: int, most: int) -> None:
    turns = Turns(count)
    async with anyio.create_task_group() as tasks:
        for number in range(count + 4):
            tasks.start_soon(lambda: turns.hold(f"k{number}", is_remote=True))  # noqa: B023
            await anyio.wait_all_tasks_blocked()
        assert len(turns.got) == most
        for number in range(count - most):
            tasks.start_soon(turns.hold, f"u{number}")
            await anyio.wait_all_tasks_blocked()
        assert turns.got[-1] == f"u{count - most - 1}"
        await turns.leave("u0")
        assert len(turns.got) == count  # what the user leaves is the user's
        await turns.leave("k0")
        assert len(turns.got) == count + 1
        assert turns.got[-1] == f"k{most}"
        tasks.cancel_scope.cancel()


async def test_a_place_that_is_given_to_somebody_who_leaves_is_not_lost() -> None:
    turns = Turns(1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(turns.hold, "a1")
        await anyio.wait_all_tasks_blocked()
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(turns.hold, "b1")
            waiting.start_soon(turns.hold, "b2")
            await anyio.wait_all_tasks_blocked()
            turns.done["a1"].set()  # and at the same moment all who wait leave
            waiting.cancel_scope.cancel()
        tasks.start_soon(turns.hold, "c1")
        await anyio.wait_all_tasks_blocked()
        assert turns.got[-1] == "c1"
        tasks.cancel_scope.cancel()
