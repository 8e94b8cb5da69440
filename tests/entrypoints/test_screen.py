"""What a person sees, and what a pipe gets."""

import io
import sys
from contextlib import redirect_stdout

import pytest

from toolfold.entrypoints import screen
from toolfold.entrypoints.commands import progress
from toolfold.entrypoints.screen import Cell, Column, ago, print_line, print_table, size
from toolfold.errors import count

COLUMNS = (Column("NAME"), Column("CALLS", is_number=True), Column("TEXT", is_wide=True))
ROWS = [(Cell("a", "name"), "1", "short"), (Cell("long-name", "name"), "1,000", "x" * 300)]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


def test_a_pipe_gets_plain_text_with_headers(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(COLUMNS, ROWS)
    print_line("state: ", Cell("done", "good"))

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "NAME       CALLS  TEXT"
    assert lines[1] == "a              1  short"
    assert lines[2] == f"long-name  1,000  {'x' * 300}"
    assert lines[3] == "state: done"


def test_a_terminal_gets_colours_and_lines_that_fit(terminal: Terminal) -> None:
    with redirect_stdout(terminal):
        print_table(COLUMNS, ROWS)
        print_line(Cell("done", "good"))

    shown = terminal.getvalue()
    assert "\x1b[32mdone" in shown
    assert "long-name" in shown
    assert "1,000" in shown
    assert "…" in shown
    assert "x" * 80 not in shown


def test_no_color_takes_the_colours_away(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with redirect_stdout(terminal):
        print_table(COLUMNS, ROWS)
        print_line(Cell("done", "good"))

    assert "\x1b[3" not in terminal.getvalue()
    assert "done" in terminal.getvalue()


def test_a_dumb_terminal_is_a_pipe(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with redirect_stdout(terminal):
        print_table(COLUMNS, ROWS)

    assert "\x1b" not in terminal.getvalue()


def test_what_looks_like_markup_is_shown_as_it_is(terminal: Terminal) -> None:
    with redirect_stdout(terminal):
        print_line("[bold]x[/bold] [EMAIL_1] :smile:")

    assert "[bold]x[/bold] [EMAIL_1] :smile:" in terminal.getvalue()


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "now"),
        (5, "5 s ago"),
        (90, "1 min ago"),
        (7200, "2 h ago"),
        (86_400, "1 day ago"),
        (3 * 86_400, "3 days ago"),
        (15 * 86_400, "2 weeks ago"),
        (800 * 86_400, "2 years ago"),
        (-120, "in 2 min"),
    ],
)
def test_times_are_told_in_the_unit_that_fits(seconds: float, said: str) -> None:
    assert ago(1_000_000_000 - seconds, now=1_000_000_000) == said


def test_plurals_and_sizes() -> None:
    assert [count(number, "run") for number in (0, 1, 2000)] == ["0 runs", "1 run", "2,000 runs"]
    assert count(2, "entry", "entries") == "2 entries"
    assert [size(number) for number in (5, 1_500, 25_000_000)] == ["5 B", "1.5 KB", "25 MB"]


def test_moments_are_exact_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    print(screen.moment(0.0))

    assert capsys.readouterr().out.startswith(("1970-01-01 ", "1969-12-31 "))


def test_the_line_below_a_run_is_erased_before_the_run_prints(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_SOON_S", 0.0)
    run = progress.RunScreen()
    run.note(1, 4, "rows")
    run._draw()
    run.print("half a line, ")
    run._draw()
    run.print("the rest\n")

    line = "\r\x1b[K\x1b[2m███░░░░░░░░░ 1 of 4 rows\x1b[0m"
    assert terminal.getvalue() == f"{line}\r\x1b[Khalf a line, the rest\n"
