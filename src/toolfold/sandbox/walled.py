"""Monty's workers behind Landlock and seccomp, where this system has them.

Monty needs no walls to be a sandbox. These are for the day on which it has a hole.
"""

import logging
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_TRIAL_S: Final = 20.0
_SOURCE: Final = str(Path(__file__).parents[2])
_log = logging.getLogger(__name__)


@contextmanager
def walled_binary() -> Iterator[Path | None]:
    """Yield a program that starts a worker behind walls; None where that does not work."""
    binary = Path(sysconfig.get_path("scripts"), "monty")
    if sys.platform != "linux" or not binary.is_file():
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="toolfold-") as directory:
        script = Path(directory, "monty")
        boot = (
            f"import sys; sys.path.insert(0, {_SOURCE!r}); "
            "from toolfold.sandbox.launcher import main; main()"
        )
        command = shlex.join([sys.executable, "-I", "-S", "-B", "-c", boot, str(binary)])
        script.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        script.chmod(0o700)
        yield script if _works(script) else None


def _works(script: Path) -> bool:
    """Whether a worker starts; if not, that is logged, and Monty is left to itself."""
    try:
        trial = subprocess.run(  # noqa: S603  # our own script
            [script, "--version"], env={}, capture_output=True, timeout=_TRIAL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        _log.warning("Monty runs without walls of the kernel: %s", error)
        return False
    if trial.returncode:
        words = trial.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        _log.warning("Monty runs without walls of the kernel: %s", words[:500])
    return not trial.returncode
