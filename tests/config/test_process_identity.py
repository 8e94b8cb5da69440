"""Whether a process is still the one that it was."""

import os
import time
from collections.abc import Iterator

import pytest

from toolfold.config.processes import is_alive_since


@pytest.fixture
def unreaped() -> Iterator[int]:
    """A process that has ended, and whose parent has not asked how."""
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    yield pid
    os.waitpid(pid, 0)


def test_a_living_process_is_alive() -> None:
    assert is_alive_since(os.getpid(), time.time())


def test_one_that_was_killed_is_dead_before_its_parent_has_reaped_it(unreaped: int) -> None:
    os.kill(unreaped, 0)  # its number is still taken
    assert not is_alive_since(unreaped, time.time())


def test_a_number_that_was_given_to_another_since_is_dead() -> None:
    assert not is_alive_since(os.getpid(), time.time() - 10 * 24 * 3600)
