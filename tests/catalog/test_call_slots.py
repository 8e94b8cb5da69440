import anyio
import pytest

from toolfold.catalog.upstream_request import CallSlots


async def test_a_writer_that_waits_for_a_person_lets_others_write_and_then_waits_for_them() -> None:
    turns = CallSlots(concurrency=8, serialize_writes=True)
    happened: list[str] = []
    answered, done = anyio.Event(), anyio.Event()

    async def asker() -> None:
        async with turns.take(is_write=True) as turn:
            async with turn.yielded():
                await answered.wait()
                happened.append("answered")
            happened.append("asker goes on")

    async def other() -> None:
        async with turns.take(is_write=True):
            happened.append("other begins")
            answered.set()
            await done.wait()
            happened.append("other ends")

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asker)
            tasks.start_soon(other)
            await answered.wait()
            await anyio.wait_all_tasks_blocked()
            done.set()

    assert happened == ["other begins", "answered", "other ends", "asker goes on"]


@pytest.mark.parametrize("is_write", [True, False])
async def test_a_turn_is_given_back_whichever_way_its_call_ends(is_write: bool) -> None:
    turns = CallSlots(concurrency=1, serialize_writes=True)
    with anyio.fail_after(60):
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                async with turns.take(is_write=is_write):
                    raise ZeroDivisionError
            with anyio.move_on_after(0.01):
                async with turns.take(is_write=is_write) as turn, turn.yielded():
                    await anyio.sleep_forever()
        async with turns.take(is_write=is_write):
            pass


async def test_a_call_that_ended_does_not_get_its_turn_back() -> None:
    turns = CallSlots(concurrency=1, serialize_writes=True)
    turn = turns.take(is_write=True)
    answered = anyio.Event()

    async def ask() -> None:
        async with turn.yielded():
            await answered.wait()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            async with turn:
                tasks.start_soon(ask)
                await anyio.wait_all_tasks_blocked()
            answered.set()
        async with turns.take(is_write=True):
            pass
