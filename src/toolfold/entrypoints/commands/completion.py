"""`toolfold completion`: what shells offer at the Tab key, from the parser and with live names.

The scripts ask `toolfold complete WORD...` for the words that may come next, a line each with what
it means. Nothing heavy is imported: names are read from files.
"""

import argparse
from argparse import Namespace
from collections.abc import Iterable, Iterator
from typing import Final

from toolfold.entrypoints.cli import make_parser, with_verb
from toolfold.errors import ToolfoldError

_BASH: Final = """\
_toolfold() {
    local line IFS=$'\\n'
    COMPREPLY=()
    for line in $(toolfold complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); do
        if [ "$line" = ":files" ]; then
            compopt -o default
            continue
        fi
        COMPREPLY+=("${line%%$'\\t'*}")
    done
}
complete -F _toolfold toolfold
"""
_ZSH: Final = """\
#compdef toolfold
_toolfold() {
    local line word files
    local -a found
    for line in ${(f)"$(toolfold complete "${(@)words[2,CURRENT]}" 2>/dev/null)"}; do
        if [[ "$line" == ":files" ]]; then
            files=1
            continue
        fi
        word="${line%%$'\\t'*}"
        found+=("${word//:/\\\\:}:${line#*$'\\t'}")
    done
    (( $#found )) && _describe toolfold found
    [[ -n "$files" ]] && _files
}
if [ "$funcstack[1]" = "_toolfold" ]; then _toolfold "$@"; else compdef _toolfold toolfold; fi
"""
_FISH: Final = """\
function __toolfold_complete
    set -l words (commandline -opc) (commandline -ct)
    toolfold complete $words[2..-1] 2>/dev/null | string match -v ':files'
end
function __toolfold_files
    set -l words (commandline -opc) (commandline -ct)
    toolfold complete $words[2..-1] 2>/dev/null | string match -q ':files'
end
complete -c toolfold -f -a '(__toolfold_complete)'
complete -c toolfold -n __toolfold_files -F
"""
_SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
_FILES: Final = ":files"
"""Stands for the names of files, which shells complete better."""

Words = Iterable[tuple[str, str]]


def completion(arguments: Namespace) -> int:
    """Print the script for a shell."""
    print(_SCRIPTS[arguments.shell], end="")
    return 0


def complete(arguments: Namespace) -> int:
    """Print what may come next; the last word is the one that is being typed."""
    *before, last = arguments.words or [""]
    for word, about in candidates(before):
        if word == _FILES or word.startswith(last):
            print(f"{word}\t{about}" if about else word)
    return 0


def candidates(before: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the words that may follow others, each with what it means."""
    parser: argparse.ArgumentParser = make_parser()
    rest = with_verb(before)[: len(before)] if before else []
    while rest and (verbs := _verbs(parser)) and rest[0] in verbs:
        parser = verbs[rest.pop(0)]
    expecting = _option(parser, rest[-1]) if rest else None
    if expecting is not None and expecting.nargs != 0:
        yield from _values(expecting, parser)
        return
    if verbs := _verbs(parser):
        yield from _described(parser)
    given = [word for word in rest if not word.startswith("-")]
    if positional := _positional(parser, len(given)):
        yield from _values(positional, parser)
    for action in parser._actions:  # noqa: SLF001  # argparse has no other way to ask
        names = [name for name in action.option_strings if name.startswith("--")]
        if names and action.help is not argparse.SUPPRESS:
            yield names[0], action.help or ""


def _verbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            return dict(action.choices)
    return {}


def _described(parser: argparse.ArgumentParser) -> Words:
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for each in action._choices_actions:  # noqa: SLF001
                yield each.dest, each.help or ""


def _option(parser: argparse.ArgumentParser, word: str) -> argparse.Action | None:
    return next((each for each in parser._actions if word in each.option_strings), None)  # noqa: SLF001


def _positional(parser: argparse.ArgumentParser, place: int) -> argparse.Action | None:
    found = [
        action
        for action in parser._actions  # noqa: SLF001
        if not action.option_strings and not isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
    ]
    if place < len(found):
        return found[place]
    return found[-1] if found and found[-1].nargs in {"*", "+"} else None


def _values(action: argparse.Action, parser: argparse.ArgumentParser) -> Words:
    """Return what an argument may be: a choice, or the name of something that is there."""
    if action.choices is not None:
        return [(str(each), "") for each in action.choices]
    word = str(action.metavar or action.dest).upper()
    kind = _of_name(parser) if word == "NAME" else _KINDS.get(word)
    if kind is None:
        return []
    try:
        return list(_names(kind))
    except (ToolfoldError, OSError, ValueError):
        return []  # what cannot be read cannot be offered


def _of_name(parser: argparse.ArgumentParser) -> str:
    """Return what NAME is: it depends on the command."""
    for word, kind in (("sessions", "sessions"), ("skills", "skills"), ("tools", "tools")):
        if word in parser.prog.split():
            return kind
    return "servers"


_KINDS: Final = {
    "FILE": "files",
    "PATH": "files",
    "DIR": "files",
    "TARGET": "files",
    "ARCHIVE": "files",
    "CONFIG": "files",
    "CLIENT": "clients",
    "SERVER": "servers",
    "TOOL": "tools",
    "RUN": "runs",
    "KEY": "keys",
    "SESSION": "sessions",
}


def _names(kind: str) -> Words:
    from toolfold.entrypoints.commands import live_names

    if kind == "files":
        return [(_FILES, "")]
    found: Words = getattr(live_names, kind)()
    return found
