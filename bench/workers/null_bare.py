"""A worker that calls a host function from the bare sandbox, answered in the same thread."""

import anyio
import protocol
import pydantic_monty as monty

_LIMITS = monty.ResourceLimits(max_suspensions=1_000_000)


async def main() -> None:
    """Serve the calls; the event loop stands still meanwhile, so nothing crosses into it."""
    told = protocol.spec()
    with monty.Monty(min_processes=1, max_processes=1) as pool:

        async def work(_number: int) -> None:
            module = monty.ExternalModule({"call": _never_called}, stubs=told["stub"])
            with pool.checkout(limits=_LIMITS, external_modules={"null": module}) as session:
                _drive(session, told["code"], told["answer"])

        await protocol.answer(work)


def _drive(session: monty.MontySession, code: str, answer: object) -> None:
    snapshot = session.feed_start(code)
    while not isinstance(snapshot, monty.MontyComplete):
        assert isinstance(snapshot, monty.FunctionSnapshot)
        if snapshot.is_os_function:
            snapshot = snapshot.resume_auto()
        else:
            snapshot = snapshot.resume({"return_value": answer})


def _never_called(*_: object, **__: object) -> None:
    raise AssertionError


anyio.run(main)
