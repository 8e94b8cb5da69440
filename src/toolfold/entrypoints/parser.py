"""Argument parsing that helps: one sentence for a mistake, and what was probably meant."""

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn

_ABOVE_0: Final = "a number above 0"

SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "ls": ("list",),
    "all": ("list",),
    "rm": ("delete", "revoke", "forget"),
    "remove": ("delete", "revoke", "rm", "forget", "uninstall"),
    "del": ("delete", "rm"),
    "add": ("create", "store", "install"),
    "new": ("create", "init"),
    "save": ("store",),
    "remember": ("store",),
    "find": ("search",),
    "grep": ("search",),
    "ask": ("search",),
    "preview": ("check",),
    "query": ("search",),
    "get": ("show", "describe", "cat"),
    "view": ("show", "describe"),
    "info": ("show", "describe", "status"),
    "describe": ("show",),
    "read": ("cat", "show"),
    "cat": ("show",),
    "exec": ("run",),
    "eval": ("run",),
    "python": ("run",),
    "start": ("serve",),
    "server": ("serve",),
    "ps": ("status",),
    "kill": ("stop",),
    "restart": ("stop",),
    "log": ("logs",),
    "history": ("runs", "history"),
    "audit": ("runs",),
    "check": ("doctor", "verify"),
    "test": ("doctor", "check"),
    "tokens": ("savings",),
    "usage": ("savings",),
    "cost": ("savings",),
    "files": ("workspace",),
    "notes": ("memory",),
    "recall": ("memory",),
    "search": ("tools", "memory"),
    "rules": ("policy",),
    "block": ("deny",),
    "forbid": ("deny",),
    "permit": ("allow",),
    "approvals": ("approve",),
    "pending": ("approve",),
    "yes": ("approve",),
    "no": ("reject",),
    "auth": ("login", "keys"),
    "setup": ("install", "init"),
    "config": ("init", "doctor"),
    "update": ("sync",),
    "version": ("--version",),
    "clear": ("reset", "delete"),
    "copy": ("fork",),
    "dashboard": ("serve",),
}
"""What people type for verbs of ours, by which of them is meant first."""


PERIODS: Final = ("today", "yesterday")
"""What `--since` takes by name, and people type as an option."""


class Parser(argparse.ArgumentParser):
    """Ends with one sentence and status 2 where the arguments are wrong."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        options.setdefault("allow_abbrev", False)
        if examples:
            options["epilog"] = "\n".join(["examples:", *(f"  {each}" for each in examples)])
        super().__init__(*args, **options)
        self.examples = tuple(examples)
        self.set_defaults(leaf=self)

    def error(self, message: str) -> NoReturn:
        """Print the sentence and leave."""
        self.exit(2, f"toolfold: {_sentence(self, message)}\n")

    def refuse(self, extra: Sequence[str]) -> NoReturn:
        """Say that some arguments are not known here."""
        word = extra[0].partition("=")[0]
        if not word.startswith("-"):
            if word in PERIODS and "--since" in self._options():
                self._leave(f"`{self.prog}` does not take {word!r}.", f"--since {word}")
            self._leave(f"`{self.prog}` does not take {word!r}.", nearest(word, self._verbs()))
        if word in self._options() or word in {"-h", "--help"}:
            self._leave(f"{word} belongs after the command: `{self.prog} {word}`.", "")
        known = {name.removeprefix("--"): name for name in self._options() if name != "--help"}
        meant = nearest(word.lstrip("-"), known)  # dashes make all options alike
        if "since" in known and word.lstrip("-") in PERIODS:
            self._leave(f"`{self.prog}` has no option {word}.", f"--since {word.lstrip('-')}")
        self._leave(f"`{self.prog}` has no option {word}.", known.get(meant, ""))

    def _leave(self, sentence: str, meant: str) -> NoReturn:
        remedy = f"Did you mean {meant}?" if meant else f"See `{self.prog} --help`."
        self.exit(2, f"toolfold: {sentence} {remedy}\n")

    def _options(self) -> list[str]:
        found = [name for action in self._actions for name in action.option_strings]
        return [name for name in found if name.startswith("--")]

    def _verbs(self) -> list[str]:
        return [
            name
            for action in self._actions
            if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
            for name in action.choices
        ]

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            known = [each.dest for each in action._choices_actions]  # noqa: SLF001
            meant = nearest(str(value), known)
            listed = "" if meant else f" Commands: {', '.join(known)}."
            sentence = f"`{self.prog} {value}` is not a command.{listed}"
            self._leave(sentence, f"`{self.prog} {meant}`" if meant else "")
        choices = [str(each) for each in action.choices]
        name = _name(action)
        self._leave(
            f"{name} takes {_either(choices)}, not {value!r}.", nearest(str(value), choices)
        )

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            kinds = {int: "a whole number", positive: "a whole number", float: "a number"}
            kind = kinds.get(action.type, "another value")
            if error.message == _ABOVE_0:
                kind = _ABOVE_0
            self._leave(f"{_name(action)} takes {kind}, not {arg_string!r}.", "")


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return what was probably meant by a word; nothing if nothing is near."""
    known = list(known)
    for synonym in SYNONYMS.get(word, ()):
        if synonym in known:
            return synonym
    import difflib

    found = difflib.get_close_matches(word, known, n=1, cutoff=cutoff)
    if found:
        return found[0]
    begins = [each for each in known if len(word) > 1 and each.startswith(word)]
    return begins[0] if len(begins) == 1 else ""


def unknown(kind: str, name: str, known: Iterable[str], *, see: str) -> str:
    """Return the sentence for a name that nothing has: what it may have been, or where to look."""
    known = list(known)
    meant = nearest(name, known)
    if meant:
        return f"No {kind} is named {name!r}. Did you mean {meant!r}?"
    if known and len(known) <= 12:
        return f"No {kind} is named {name!r}. There are: {', '.join(known)}."
    return f"No {kind} is named {name!r}. {see}"


def positive(text: str) -> int:
    """Return a whole number above 0, as the type of an option."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(_ABOVE_0)
    return number


def accept_yes(*parsers: argparse.ArgumentParser) -> None:
    """Take `--yes` where nothing is asked, as everywhere else that something is deleted."""
    for parser in parsers:
        parser.add_argument("--yes", "-y", action="store_true", help="accepted and not needed")


def check_terminal(question: str) -> None:
    """Make sure that a question can be asked.

    Raises:
        BadInput: There is no terminal.
    """
    from toolfold.errors import BadInput

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput(f"{question} No terminal to ask at: pass --yes.")


def confirm(question: str, *, yes: bool) -> bool:
    """Ask the person at the terminal, unless `--yes` was given.

    Raises:
        BadInput: There is no terminal.
    """
    if yes:
        return True
    check_terminal(question)
    try:
        return input(f"{question} [y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:  # nothing more can be typed, and that is no yes
        print()
        return False


def _sentence(parser: Parser, message: str) -> str:
    """Return a message of argparse as a sentence with a remedy."""
    see = f"See `{parser.prog} --help`."
    if match := re.fullmatch(r"the following arguments are required: (.*)", message):
        verb = "are" if "," in match[1] else "is"
        return f"{_names(match[1])} {verb} missing. {_example(parser)}"
    if match := re.fullmatch(r"argument ([^:]*): expected (at least )?one argument", message):
        return f"{match[1]} needs a value. {see}"
    if match := re.fullmatch(r"argument ([^:]*): not allowed with argument (.*)", message):
        return f"{match[1]} and {match[2]} exclude each other: give one of them. {see}"
    if match := re.fullmatch(r"argument ([^:]*): ignored explicit argument (.*)", message):
        return f"{match[1]} takes no value, and got {match[2]}. {see}"
    return f"{message[:1].upper()}{message[1:]}. {see}"


def _example(parser: Parser) -> str:
    """Return a command that would be right; how all are written where no example is known."""
    for example in parser.examples:
        if example.startswith("toolfold "):
            return f"For example: `{example}`."
    usage = " ".join(parser.format_usage().removeprefix("usage:").split())
    return f"Usage: `{usage}`"


def _names(text: str) -> str:
    """Return the names that argparse lists: options as they are typed, the others as in help."""
    return ", ".join(each if each.startswith("-") else each.upper() for each in text.split(", "))


def _name(action: argparse.Action) -> str:
    names = [name for name in action.option_strings if name.startswith("--")]
    return (names or list(action.option_strings) or [str(action.metavar or action.dest).upper()])[0]


def _either(choices: Sequence[str]) -> str:
    if len(choices) == 1:
        return choices[0]
    return f"{', '.join(choices[:-1])} or {choices[-1]}"
