"""Standard streams that serve several terminals: what a command prints goes to its own."""

import io
import sys
from collections.abc import Callable
from threading import Thread
from typing import Any, cast

import pytest

from toolfold.entrypoints import screen
from toolfold.entrypoints.terminal import RemoteTerminal, attached, bound, route_streams


class FakeTerminal:
    """Keeps what is printed."""

    columns = 80

    def __init__(self) -> None:
        self.printed = ""

    def is_tty(self, _name: str) -> bool:
        return True

    def write(self, _name: str, content: str) -> None:
        self.printed += content


@pytest.fixture
def route(monkeypatch: pytest.MonkeyPatch) -> Callable[[], io.StringIO]:
    """Return what routes our streams, and gives what this process itself prints from then on."""

    def route() -> io.StringIO:
        own = io.StringIO()
        for name in ("stdin", "stdout", "stderr"):
            monkeypatch.setattr(sys, name, own)
        route_streams()
        return own

    return route


def at(terminal: FakeTerminal) -> Any:
    return attached(cast(RemoteTerminal, terminal))


def test_two_terminals_do_not_see_what_the_other_prints(route: Callable[[], io.StringIO]) -> None:
    own = route()
    here, there = FakeTerminal(), FakeTerminal()
    with at(here):
        print("here")
        with at(there):
            print("there")
    print("at home")

    assert (here.printed, there.printed, own.getvalue()) == ("here\n", "there\n", "at home\n")


def test_a_thread_of_a_library_prints_at_the_terminal_it_was_started_for(
    route: Callable[[], io.StringIO],
) -> None:
    own = route()
    here = FakeTerminal()
    with at(here):
        stream = bound(sys.stdout)
        thread = Thread(target=lambda: print("from a thread", file=stream))
    thread.start()
    thread.join()

    assert (here.printed, own.getvalue()) == ("from a thread\n", "")


def test_a_spinner_leaves_the_streams_of_others_alone(route: Callable[[], io.StringIO]) -> None:
    own = route()
    here, there = FakeTerminal(), FakeTerminal()
    with at(here), screen.working("looking"):
        with at(there):
            print("there")

    assert there.printed == "there\n"
    assert "looking" in here.printed
    assert "there" not in here.printed
    assert own.getvalue() == ""
