"""A worker that runs calls through the whole product, over an upstream that is not there."""

import tempfile
from pathlib import Path

import anyio
import protocol
from nullstage import null_runtime


async def main(directory: Path) -> None:
    """Serve runs of the code."""
    told = protocol.spec()
    async with null_runtime(directory, told["answer"]) as (runtime, _journal):

        async def work(number: int) -> None:
            result = await runtime.run(f"# run {number}\n{told['code']}")
            assert result.success, result.text

        await protocol.answer(work)


with tempfile.TemporaryDirectory() as scratch:
    anyio.run(main, Path(scratch))
