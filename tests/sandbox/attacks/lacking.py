"""A host that lacks a system call: `python lacking.py NUMBER...` says what becomes of guest code.

A seccomp filter makes those calls fail as on a kernel that never had them. What is printed is the
level of confinement, or why there is none.
"""

import ctypes
import struct
import sys
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2]))

from guests import LIMITS, value_of

from toolfold.errors import RunCrashed
from toolfold.sandbox.cpython.sandbox import CPythonSandbox

_ENOSYS = 0x00050000 | 38
_ALLOW = 0x7FFF0000


def lose(numbers: list[int]) -> None:
    """Make these system calls fail in this process and all that come of it."""
    steps = [(0x20, 0, 0, 0)]
    for number in numbers:
        steps += [(0x15, 0, 1, number), (0x06, 0, 0, _ENOSYS)]
    steps.append((0x06, 0, 0, _ALLOW))
    code = b"".join(struct.pack("<HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("<HxxxxxxQ", len(steps), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, program, 0, 0) == 0


async def main() -> None:
    sandbox = CPythonSandbox(LIMITS, workers=1)
    async with sandbox.running():
        try:
            assert await value_of(sandbox, "6 * 7") == 42
            print(sandbox.level)
        except RunCrashed as error:
            print(f"none: {error}")


if __name__ == "__main__":
    lose([int(number) for number in sys.argv[1:]])
    anyio.run(main)
