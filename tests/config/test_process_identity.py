"""Whether a process is still the one that it was."""

import os
import subprocess
import time
from collections.abc import Iterator

import pytest

from toolfold.config.processes import identity_of, is_alive, is_alive_since, own_identity


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


DAY_S = 24 * 3600.0


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("step_s", [400 * DAY_S, -400 * DAY_S])
def test_no_step_of_the_clock_makes_a_live_process_look_dead(
    sleeper: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch, step_s: float
) -> None:
    began, identity = time.time(), identity_of(sleeper.pid)
    monkeypatch.setattr(time, "time", lambda: began + step_s)

    assert is_alive(identity, began)
    assert identity_of(sleeper.pid) == identity


def test_another_process_of_the_same_id_is_not_the_one(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    identity = identity_of(sleeper.pid)
    later, other_boot = identity + (1 << 36), identity + (1 << 22)

    assert identity != own_identity()
    assert not is_alive(later, time.time())
    assert not is_alive(other_boot, time.time())
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(identity, time.time())  # dead, and not yet reaped


def test_a_run_of_an_earlier_version_is_told_by_the_id_of_its_process() -> None:
    assert is_alive(os.getpid(), time.time())
    assert not is_alive(os.getpid(), time.time() - 10 * DAY_S)


def test_an_identity_fits_in_a_column_of_the_journal() -> None:
    assert 1 << 22 < own_identity() < 1 << 63
