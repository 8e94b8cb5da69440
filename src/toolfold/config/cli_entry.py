"""The commands of a program that an entry declares."""

import re
from typing import Final

from toolfold.config.entry import ServerEntry
from toolfold.config.servers import CliArgument, CliCommand
from toolfold.errors import ConfigError
from toolfold.jsontypes import Json

_NAME: Final = re.compile(r"[A-Za-z_]\w{0,63}")
_OPTION: Final = re.compile(r"-[A-Za-z0-9]|--[A-Za-z0-9][\w.-]{0,100}")
_TYPES: Final = ("string", "integer", "number", "boolean")
_COMMAND_KEYS: Final = frozenset(
    {"name", "args", "description", "read_only", "destructive", "arguments", "end_of_options"}
)
_ARGUMENT_KEYS: Final = frozenset(
    {"name", "option", "type", "enum", "required", "list", "description"}
)
_MAX_COMMANDS: Final = 500
_MAX_ARGUMENTS: Final = 60


def read_commands(written: Json) -> tuple[CliCommand, ...]:
    """Read `commands` of an entry.

    Raises:
        ConfigError: One cannot be used; the message says which, and why.
    """
    if not isinstance(written, list) or not written:
        raise ConfigError("`commands` must list the commands that may be run, with a `name` each")
    if len(written) > _MAX_COMMANDS:
        raise ConfigError(f"`commands` has more than {_MAX_COMMANDS} entries")
    commands = tuple(_command(f"commands[{at}]", each) for at, each in enumerate(written))
    _refuse_twins("commands", [each.name for each in commands])
    return commands


def _command(place: str, written: Json) -> CliCommand:
    entry = ServerEntry(place, written)
    _refuse_unknown(place, written, _COMMAND_KEYS)
    try:
        arguments = tuple(
            _argument(f"arguments[{at}]", each) for at, each in enumerate(entry.items("arguments"))
        )
        if len(arguments) > _MAX_ARGUMENTS:
            raise ConfigError(f"`arguments` has more than {_MAX_ARGUMENTS} entries")
        _refuse_twins("arguments", [each.name for each in arguments])
        return CliCommand(
            name=_name(entry),
            words=entry.words("args"),
            description=entry.string("description"),
            is_read_only=entry.flag("read_only", default=False),
            is_destructive=(
                entry.flag("destructive", default=False) if entry.has("destructive") else None
            ),
            ends_options=entry.flag("end_of_options", default=False),
            arguments=arguments,
        )
    except ConfigError as error:
        raise ConfigError(f"in `{place}`: {error}") from error


def _argument(place: str, written: Json) -> CliArgument:
    entry = ServerEntry(place, written)
    _refuse_unknown(place, written, _ARGUMENT_KEYS)
    option, kind = entry.string("option"), entry.string("type") or "string"
    if option and not _OPTION.fullmatch(option):
        raise ConfigError(f"`{place}.option` must be as -n or --name, not {option!r}")
    if kind not in _TYPES:
        raise ConfigError(f"`{place}.type` must be one of {', '.join(_TYPES)}, not {kind!r}")
    if kind == "boolean" and (not option or entry.flag("list", default=False)):
        raise ConfigError(
            f"`{place}` is a boolean, and so needs an `option` and cannot be a `list`"
        )
    choices = entry.words("enum")
    if choices and kind != "string":
        raise ConfigError(f"`{place}.enum` is for strings")
    return CliArgument(
        name=_name(entry),
        option=option,
        type=kind,
        choices=choices,
        is_required=entry.flag("required", default=False),
        is_list=entry.flag("list", default=False),
        description=entry.string("description"),
    )


def _name(entry: ServerEntry) -> str:
    name = entry.string("name")
    if not _NAME.fullmatch(name):
        raise ConfigError(f"`name` must be a word such as list_issues, not {name!r}")
    return name


def _refuse_twins(key: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"`{key}` has two of the name {name!r}")


def _refuse_unknown(place: str, written: Json, known: frozenset[str]) -> None:
    """A key that is not read may be one that was to keep something from happening."""
    unknown = sorted(written.keys() - known) if isinstance(written, dict) else []
    if unknown:
        raise ConfigError(f"`{place}` has `{unknown[0]}`, which is not known")
