"""What a person sees: tables, colours, times. Plain text in a pipe, where rich is not imported."""

import json
import re
import sys
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

from toolfold.errors import count

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

STYLES: Final = {
    "good": "green",
    "bad": "red",
    "warn": "yellow",
    "dim": "dim",
    "name": "cyan",
    "strong": "bold",
}
_GAP: Final = "  "
_NARROWEST: Final = 20
_AGES: Final = ((60, "s"), (60, "min"), (24, "h"), (7, "days"), (52, "weeks"))

_FOR_PEOPLE: Final = (
    (
        r"Tell the user to run (`toolfold approve \w+` or `toolfold reject \w+`) in a terminal; "
        r"then `runs\.get\([^`\n]{1,80}\)` shows the result\. Other runs can go on meanwhile\.",
        r"Run \1.",
    ),
    (
        r"(?<![\w.-])([\w.-]{1,200}) was not called: a rule forbids it, ([^\n]{1,600})\. Do "
        r"without it, or ask the user to change the rule\.",
        r"\1 was not called: a rule forbids it, \2. `toolfold policy check \1` shows the rule; "
        r"`toolfold policy unset \1` removes one about this tool alone.",
    ),
    (
        r"The user rejected ([\w.-]{1,200}): it was not called\. Do not try to get the same by "
        r"other tools; ask the user what they want\.",
        r"You rejected \1: it was not called.",
    ),
    (r"Ask the user, and run the code again\.", r"Run the code again."),
    (r"or ask the user to add the kind", r"or add the kind"),
    (r"`?tools\.search\(\.\.\.\)`? finds tools\.", r"`toolfold tools search WORDS` finds tools."),
    (r"takes str, not ", r"takes text, not "),
    (r"(takes [^\n]{1,200}, not )Literal\[([^\]\n]{1,100})\]", r"\1\2"),
    (
        r"(FileNotFoundError: \[Errno 2\] No such file[^\n]{0,100}"
        r"'/(?!workspace\b|tmp\b)[^\n]{0,300})",
        r"\1. Code sees none of your files: use a server.",
    ),
)
"""What errors tell models, and what a person reads in its place. Repeats are bounded: errors quote
guest code."""


class Cell(NamedTuple):
    """A text in a style of ours; in a pipe, the text."""

    text: str
    style: str = ""


class Column(NamedTuple):
    """A column of a table. Numbers stand at its right edge; a wide one is cut where room lacks."""

    title: str
    is_number: bool = False
    is_wide: bool = False


def is_terminal(file: TextIO | None = None) -> bool:
    """Whether a person looks at standard output, or at `file`."""
    file = file or sys.stdout
    return file.isatty() and _variables().get("TERM") != "dumb"


def for_people(text: object) -> str:
    """Return an error, which is worded for models, as the person reads it who has to act."""
    worded = str(text)
    for said, meant in _FOR_PEOPLE:
        worded = re.sub(said, meant, worded)
    return worded


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[str | Cell]]) -> None:
    """Print rows under the titles of their columns."""
    cells = [[_cell(each) for each in row] for row in rows]
    if is_terminal():
        _print_rich_table(columns, cells)
    else:
        print("\n".join(_plain_lines(columns, cells)))


def print_line(*parts: str | Cell, file: TextIO | None = None) -> None:
    """Print a line, parts of it in colour."""
    if is_terminal(file):
        console = _console(file)
        console.print(_styled([_cell(part) for part in parts]), soft_wrap=True)
    else:
        print("".join(_cell(part).text for part in parts), file=file or sys.stdout)


def print_json(value: object) -> None:
    """Print a value for programs."""
    print(json.dumps(value, ensure_ascii=False, indent=2))


def tell(arguments: Namespace, sentence: str, **facts: object) -> None:
    """Say what was done: to people in a sentence, to programs by facts, with the sentence."""
    if getattr(arguments, "json", False):
        print_json({**facts, "message": sentence})
    else:
        print(sentence)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say on standard error that something takes a while, as long as it does."""
    if not is_terminal(sys.stderr):
        yield
        return
    from rich.live import Live
    from rich.spinner import Spinner

    # Left to itself it would replace the streams of the whole process, which others use, too.
    with Live(
        Spinner("dots", what),
        console=_console(sys.stderr),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ):
        yield


def moment(at: float, *, now: float | None = None) -> str:
    """Return how long ago something was, for a person; the date and time in a pipe."""
    if not is_terminal():
        return exact_moment(at)
    return ago(at, now=time.time() if now is None else now)


def exact_moment(at: float) -> str:
    """Return a moment in the user's own time zone."""
    from toolfold.entrypoints.terminal import local_time

    return local_time(at).strftime("%Y-%m-%d %H:%M:%S")


def ago(at: float, *, now: float) -> str:
    """Return how long ago a moment is, in the largest unit that fits."""
    seconds = now - at
    if abs(seconds) < 1:
        return "now"
    span = _span(abs(seconds))
    return f"{span} ago" if seconds > 0 else f"in {span}"


def size(size_bytes: int) -> str:
    """Return a size as people read it."""
    value = float(size_bytes)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" or value >= 10 else f"{value:.1f} {unit}"
        value /= 1000
    return ""


def _span(seconds: float) -> str:
    value: float = seconds
    for factor, unit in _AGES:
        if value < factor:
            whole = int(value)
            return f"{whole} {unit.removesuffix('s') if whole == 1 and len(unit) > 1 else unit}"
        value /= factor
    return count(int(value), "year")


def _cell(part: str | Cell) -> Cell:
    return part if isinstance(part, Cell) else Cell(part)


def _plain_lines(columns: Sequence[Column], rows: list[list[Cell]]) -> Iterator[str]:
    titles = [column.title for column in columns]
    texts = [titles, *([cell.text for cell in row] for row in rows)]
    widths = [max(len(row[place]) for row in texts) for place in range(len(columns))]
    for row in texts:
        padded = [
            text.rjust(width) if column.is_number else text.ljust(width)
            for text, width, column in zip(row, widths, columns, strict=True)
        ]
        yield _GAP.join(padded).rstrip()


def _print_rich_table(columns: Sequence[Column], rows: list[list[Cell]]) -> None:
    from rich.table import Table

    console = _console()
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    widths = _widths(columns, rows, console.width)
    for column, width in zip(columns, widths, strict=True):
        justify: Any = "right" if column.is_number else "left"
        table.add_column(column.title, justify=justify, no_wrap=True, min_width=width)
    for row in rows:
        cut = [_cut(cell, width) for cell, width in zip(row, widths, strict=True)]
        table.add_row(*(_styled([cell]) for cell in cut))
    console.print(table)


def _widths(columns: Sequence[Column], rows: list[list[Cell]], room: int) -> list[int]:
    """Return how wide columns are: as their texts, but for wide ones, which share what is left."""
    widest = [
        max([len(column.title), *(len(row[place].text) for row in rows)])
        for place, column in enumerate(columns)
    ]
    fixed = sum(width for width, each in zip(widest, columns, strict=True) if not each.is_wide)
    wide = sum(each.is_wide for each in columns)
    left = room - fixed - len(_GAP) * (len(columns) - 1)
    share = max(_NARROWEST, left // wide) if wide else 0
    return [
        min(width, share) if column.is_wide else width
        for width, column in zip(widest, columns, strict=True)
    ]


def _cut(cell: Cell, width: int) -> Cell:
    return cell if len(cell.text) <= width else cell._replace(text=f"{cell.text[: width - 1]}…")


def _styled(cells: Sequence[Cell]) -> "Text":
    from rich.text import Text

    text = Text()
    for cell in cells:
        text.append(cell.text, style=STYLES.get(cell.style, ""))
    return text


def _console(file: TextIO | None = None) -> "Console":
    from rich.console import Console

    variables = _variables()
    options: dict[str, Any] = {}
    from toolfold.entrypoints.terminal import bound, columns

    if not variables.get("COLUMNS", "").isdigit():
        options["width"] = columns()
    return Console(
        file=bound(file or sys.stdout),
        force_terminal=True,
        no_color="NO_COLOR" in variables or None,
        highlight=False,
        emoji=False,
        markup=False,
        _environ=variables,
        **options,
    )


def _variables() -> Mapping[str, str]:
    from toolfold.config.config import environment  # where nobody looks, it is not needed

    return environment()
