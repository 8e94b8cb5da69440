"""A host that waits to be killed: it prints the process of its guest, which computes for ever."""

import sys
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2]))

from attacks.tiers import running
from guests import LIMITS, Host, host_modules, process_of

from toolfold.jsontypes import Json
from toolfold.sandbox.sandbox import GuestCall, Program


async def main() -> None:
    async with (
        running(sys.argv[1], LIMITS) as sandbox,
        sandbox.open(host_modules(), frozenset()) as session,
    ):

        async def tell(_call: GuestCall) -> Json:
            print(process_of(session), flush=True)
            return None

        code = "import host\nhost.wait()\nwhile True:\n    pass"
        await session.run(Program(source=code), Host({"wait": tell}).call)


if __name__ == "__main__":
    anyio.run(main)
