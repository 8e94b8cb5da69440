"""Write docs/commands.md and the man page from the parser; a test holds them up to date."""

import argparse
import textwrap
from collections.abc import Iterator
from pathlib import Path

from json_shapes import SHAPES, WITHOUT

from toolfold.entrypoints.cli import make_parser
from toolfold.entrypoints.parser import Parser

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "commands.md"
MANUAL = ROOT / "man" / "toolfold.1"
_HEAD = """\
# Commands

Made from the parser by `scripts/write_commands.py`. `toolfold COMMAND --help` prints the same.

Every command that shows something takes `--json`, and prints one value of the shape that is given
below: `{name: string, tags: [string], at?: number|null}` is an object that may lack `at`, `{*: T}` one with
names of any kind. Moments are seconds since 1970. Errors go to standard error as sentences. Without
`--json` are: {WITHOUT_JSON}. Exit status: 0 done, 1 done and something is
wrong (a check failed, nothing was found), 2 not done (a mistake in the arguments or the
configuration), 130 interrupted. Colours and relative times appear at a terminal only; `NO_COLOR=1`
switches colours off. Destructive commands ask first; in a script pass `--yes`.

<!-- blocks not run: single commands with names that stand for yours; a test parses each of them -->
"""


def parsers() -> Iterator[Parser]:
    """Yield the parser of every command that is listed, groups before their verbs."""
    yield from _below(make_parser())


def _below(parser: argparse.ArgumentParser) -> Iterator[Parser]:
    assert isinstance(parser, Parser)
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for shown in action._choices_actions:
                yield from _below(action.choices[shown.dest])


def page() -> str:
    """Return docs/commands.md."""
    without = "; ".join(f"`{name}` ({reason})" for name, reason in WITHOUT.items())
    parts = [_HEAD.replace("{WITHOUT_JSON}", without)]
    for parser in parsers():
        if parser.prog == "toolfold":
            continue
        level = "##" if parser.prog.count(" ") == 1 else "###"
        usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
        parts.append(f"{level} {parser.prog}\n\n{parser.description}\n\n```text\n{usage}\n```\n")
        if rows := list(_rows(parser)):
            parts.append("\n".join(["| | |", "| --- | --- |", *rows, ""]))
        if parser.examples:
            examples = "\n".join(f"$ {each}" for each in parser.examples)
            parts.append(f"```console\n{examples}\n```\n")
        if shape := SHAPES.get(parser.prog.removeprefix("toolfold ")):
            parts.append(f"With `--json`:\n\n```text\n{textwrap.fill(shape, 110)}\n```\n")
    return "\n".join(parts)


def _rows(parser: Parser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction | argparse._HelpAction):
            continue
        name = _written(action).replace("|", "\\|")
        yield f"| `{name}` | {(action.help or '').replace('|', chr(92) + '|')} |"


def _written(action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.metavar or action.dest)
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    if action.choices is not None and action.metavar is None:
        value = " " + "|".join(map(str, action.choices))
    return f"{', '.join(action.option_strings)}{value}"


def manual() -> str:
    """Return the man page: every command with its options and examples."""
    lines = ['.TH "TOOLFOLD" "1" "" "toolfold" "toolfold"', ".SH NAME"]
    lines += ["toolfold \\- fold every tool an agent has into one", ".SH SYNOPSIS"]
    lines += [".B toolfold", "COMMAND [OPTIONS]", ".SH COMMANDS"]
    for parser in parsers():
        if parser.prog != "toolfold":
            lines += _section(parser)
    lines += [".SH EXIT STATUS", "0: done. 1: done, and something is wrong. 2: not done."]
    lines += ["130: interrupted.", ".SH ENVIRONMENT", ".TP", ".B NO_COLOR", "No colours."]
    lines += [".TP", ".B TOOLFOLD_HOME", "One directory for everything that toolfold stores."]
    return "\n".join(lines) + "\n"


def _section(parser: Parser) -> Iterator[str]:
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    yield from (f".SS {_roff(parser.prog)}", _roff(str(parser.description)), ".PP", _roff(usage))
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction | argparse._HelpAction):
            yield from (".TP", f".B {_roff(_written(action))}", _roff(action.help or ""))
    if parser.examples:
        yield from (".PP", ".nf", *map(_roff, parser.examples), ".fi")


def _roff(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return f"\\&{escaped}" if escaped.startswith(".") else escaped


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    MANUAL.write_text(manual(), encoding="utf-8")


if __name__ == "__main__":
    main()
