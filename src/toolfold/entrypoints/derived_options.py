"""Commands of `toolfold memory` that come from signatures of verbs. Nothing heavy is imported."""

import argparse
from typing import Any, Final

from toolfold.entrypoints.verb_commands import COMMANDS

_TYPES: Final[dict[str, Any]] = {"integer": int, "number": float}


def add_derived(verbs: Any) -> None:
    """Add the verbs that have no command yet: what must be given by position, the rest by name."""
    for name, about, path, may_repeat, parameters in COMMANDS:
        if name in verbs.choices:
            continue
        required = [f"{each.upper()}" for each, _, needed in parameters if needed]
        parser: argparse.ArgumentParser = verbs.add_parser(
            name,
            help=about[0].lower() + about[1:],
            description=f"{about}.",
            examples=(" ".join(["toolfold memory", name, *required]),),
        )
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument("--namespace", help="where the notes belong (default: the project)")
        for parameter, kind, is_required in parameters:
            _add_parameter(parser, parameter, kind, is_required=is_required)
        names = tuple(each for each, _, _ in parameters)
        parser.set_defaults(
            command="call_verb", module="commands.derived", verb=(path, may_repeat, names)
        )


def _add_parameter(
    parser: argparse.ArgumentParser, name: str, kind: str, *, is_required: bool
) -> None:
    options: dict[str, Any] = {"dest": name}
    flag = f"--{name.replace('_', '-')}"
    if kind == "boolean":
        parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=None, **options)
    elif kind == "texts":
        parser.add_argument(flag, nargs="+", metavar="TEXT", required=is_required, **options)
    elif is_required:
        parser.add_argument(name, type=_TYPES.get(kind, str))
    else:
        parser.add_argument(flag, type=_TYPES.get(kind, str), metavar=kind.upper(), **options)
