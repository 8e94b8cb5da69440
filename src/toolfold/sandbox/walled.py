"""A program that starts Monty's workers behind Landlock and seccomp, where this system has them.

Monty needs no walls to be a sandbox. These are for the day on which it has a hole.
"""

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pydantic_monty._binary import find_monty_binary  # which is looked for in many places

from toolfold.sandbox.cpython.kernel import missing_walls

_MFD_EXEC: Final = 0x10  # hardened systems want to be told that a file in memory is a program
_SOURCE: Final = str(Path(__file__).parents[2])


@contextmanager
def walled_binary() -> Iterator[Path | None]:
    """Yield the program; None where there are no walls. Whether it works, only a worker shows.

    It is a file in memory, so that nothing is left behind however this process ends.
    """
    if sys.platform != "linux" or missing_walls():
        yield None
        return
    script = _memory_file(_script(find_monty_binary()))
    try:
        yield Path(f"/proc/{os.getpid()}/fd/{script}")
    finally:
        os.close(script)


def _script(binary: str | Path) -> str:
    boot = (
        f"import sys; sys.path.insert(0, {_SOURCE!r}); "
        "from toolfold.sandbox.launcher import main; main()"
    )
    command = shlex.join([sys.executable, "-I", "-S", "-B", "-c", boot, str(binary)])
    return f'#!/bin/sh\nexec {command} "$@"\n'


if sys.platform == "linux":

    def _memory_file(text: str) -> int:
        """Return a descriptor to read `text` from: what is open to write cannot be executed."""
        try:
            writing = os.memfd_create("monty", os.MFD_CLOEXEC | _MFD_EXEC)
        except OSError:  # a kernel that does not ask
            writing = os.memfd_create("monty")
        try:
            os.write(writing, text.encode())
            return os.open(f"/proc/self/fd/{writing}", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            os.close(writing)
