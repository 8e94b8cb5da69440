"""A host that waits to be killed: it prints the processes of its guest, which computes for ever."""

import sys
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2]))

from attacks.tiers import level_of
from guests import LIMITS, Host, host_modules

from toolfold.jsontypes import Json
from toolfold.sandbox.cpython.sandbox import CPythonSandbox
from toolfold.sandbox.sandbox import GuestCall, Program


async def main() -> None:
    sandbox = CPythonSandbox(LIMITS, workers=1, levels=(level_of(sys.argv[1]),))
    async with sandbox.running(), sandbox.open(host_modules(), frozenset()) as session:

        async def tell(_call: GuestCall) -> Json:
            print(session.guest.pid, flush=True)
            return None

        code = "import host\nhost.wait()\nwhile True:\n    pass"
        await session.run(Program(source=code), Host({"wait": tell}).call)


if __name__ == "__main__":
    anyio.run(main)
