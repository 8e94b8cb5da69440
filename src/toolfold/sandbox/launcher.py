"""Start a worker of Monty behind walls: it needs its own file, its libraries and two pipes.

Run as a program, with the interpreter's file as first argument. Standard library only.
"""

import os
import sys

from toolfold.sandbox.cpython import kernel

_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
_LOADER = "/lib64/ld-linux-x86-64.so.2"


def main() -> None:
    """Raise the walls and become the worker."""
    binary = os.path.realpath(sys.argv[1])
    executable = (binary, os.path.realpath(_LOADER))
    kernel.gain_nothing()
    kernel.restrict_files([os.path.realpath(path) for path in _LIBRARIES], [], executable)
    kernel.restrict_calls(has_files=False, starting=True)
    os.execve(binary, [binary, *sys.argv[2:]], {})  # noqa: S606  # that is its work
