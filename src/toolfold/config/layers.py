"""Settings from files, environment and flags: read as layers, then merged."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from toolfold.errors import ConfigError, shown

Pairs: TypeAlias = tuple[tuple[str, str], ...]
Value: TypeAlias = bool | int | float | str | tuple[str, ...] | Pairs | None
SettingKey: TypeAlias = tuple[str, ...]
Values: TypeAlias = dict[SettingKey, Value]

ENVIRON_PREFIX = "TOOLFOLD_"
MAX_REMARKS = 20


class SettingKind(NamedTuple):
    """What a setting may hold, and which of two values is the stricter."""

    expected: str
    take: Callable[[object], Value]
    """Return the value in its proper type, or None if it does not fit."""

    strictness: Callable[[Value], float]
    """The higher, the stricter."""

    tighter: str = ""
    """Which direction a project may go, in words; none where it has no say."""

    is_secret: bool = False
    """Whether no message may repeat a value."""

    def show(self, value: object) -> str:
        """Return a value as messages have it."""
        return "what is there" if self.is_secret else shown(repr(value))


class Setting(NamedTuple):
    """One setting and the value it has when nobody says anything."""

    kind: SettingKind
    default: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsSchema:
    """All settings there are: those with a fixed key, and those of each server."""

    settings: Mapping[SettingKey, Setting]
    server_options: Mapping[str, Setting]

    def __getitem__(self, key: SettingKey) -> Setting:
        """Return the setting of `key`; the keys of a server are `("servers", NAME, option)`."""
        return self.server_options[key[2]] if key[0] == "servers" else self.settings[key]

    def nearest(self, key: SettingKey) -> str | None:
        """Return the known key most like `key`, as a person writes it."""
        known = [dotted(each) for each in self.settings]
        known += [dotted(("servers", key[1], name)) for name in self.server_options if len(key) > 2]
        return nearest(dotted(key), known)


class Layer(NamedTuple):
    """What one place says, and what in it was not understood."""

    values: Values
    remarks: tuple[str, ...] = ()


def dotted(key: SettingKey) -> str:
    """Write a key as a person does: `limits.calls`."""
    return shown(".".join(key))


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the one of `known` that is most like `name`, if any is like it."""
    from difflib import get_close_matches  # only a mistake needs it

    return next(iter(get_close_matches(name, list(known), n=1, cutoff=cutoff)), None)


def variable_of(key: SettingKey) -> str:
    """Return the environment variable of a setting: `TOOLFOLD_LIMITS_CALLS`."""
    return ENVIRON_PREFIX + "_".join(key).upper()


def read_toml(content: bytes, schema: SettingsSchema) -> Layer:
    """Read a `config.toml`; keys that nobody knows become remarks.

    Raises:
        ConfigError: It is not TOML, or a value does not fit; the message does not name the file.
    """
    import tomllib

    try:
        document = tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"is not text in UTF-8: byte {error.start}") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"is not valid TOML: {error}") from error
    values: Values = {}
    unknown = []
    for key, value in _leaves(document, schema):
        try:
            kind = schema[key].kind
        except KeyError:
            unknown.append(key)
        else:
            values[key] = _taken(dotted(key), value, kind)
    remarks = [_unknown(dotted(key), schema.nearest(key)) for key in unknown[:MAX_REMARKS]]
    if len(unknown) > MAX_REMARKS:
        remarks.append(f"{len(unknown) - MAX_REMARKS} more are not settings")
    return Layer(values, tuple(remarks))


def read_environ(environ: Mapping[str, str], schema: SettingsSchema) -> Layer:
    """Read the variables of settings with a fixed key; a name much like one becomes a remark.

    Raises:
        ConfigError: A value does not fit.
    """
    known = {variable_of(key): key for key in schema.settings}
    values: Values = {}
    remarks = []
    for name in sorted(name for name in environ if name.startswith(ENVIRON_PREFIX)):
        if name in known:
            key = known[name]
            values[key] = _taken(name, _number(environ[name]), schema.settings[key].kind)
        elif near := nearest(name, known, cutoff=0.85):
            remarks.append(_unknown(name, near))
    return Layer(values, tuple(remarks))


def read_overrides(overrides: Mapping[str, object], schema: SettingsSchema) -> Layer:
    """Read what flags say, by dotted key; text is taken as in the environment.

    Raises:
        ConfigError: There is no such setting, or the value does not fit.
    """
    values: Values = {}
    for name, value in overrides.items():
        key = tuple(name.split("."))
        try:
            kind = schema[key].kind
        except (KeyError, IndexError):
            near = schema.nearest(key)
            hint = f" Did you mean {near!r}?" if near else ""
            raise ConfigError(f"{name!r} is not a setting.{hint}") from None
        values[key] = _taken(name, _number(value), kind)
    return Layer(values)


def tighten(user: Values, project: Values, schema: SettingsSchema) -> Layer:
    """Let the project's values replace the user's where they are stricter, and only there."""
    values = dict(user)
    remarks = []
    for key, wanted in project.items():
        kind, default = schema[key]
        held = user.get(key, default)
        if kind.strictness(wanted) >= kind.strictness(held):
            values[key] = wanted
        else:
            said = "what it says" if kind.is_secret else str(wanted)
            than = "the user's" if kind.is_secret else str(held)
            remarks.append(f"`{dotted(key)}`: {said} is ignored, a project may not loosen {than}")
    return Layer(values, tuple(remarks))


def _leaves(
    document: Mapping[str, object], schema: SettingsSchema
) -> Iterator[tuple[SettingKey, object]]:
    sections = {key[0] for key in schema.settings if len(key) > 1}
    for name, value in document.items():
        if name == "servers":
            for server, options in _table(name, value).items():
                for option, inner in _table(f"servers.{server}", options).items():
                    yield (name, server, option), inner
        elif name in sections:
            for inner_name, inner in _table(name, value).items():
                yield (name, inner_name), inner
        else:
            yield (name,), value


def _table(name: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ConfigError(f"`{shown(name)}` must be a table, not {shown(repr(value))}")
    return value


def _taken(name: str, value: object, kind: SettingKind) -> Value:
    taken = kind.take(value)
    if taken is None:
        raise ConfigError(f"`{name}` must be {kind.expected}, not {kind.show(value)}")
    return taken


def _unknown(name: str, nearest: str | None) -> str:
    hint = f"; did you mean `{nearest}`?" if nearest else ""
    return f"`{name}` is not a setting{hint}"


def _number(value: object) -> object:
    """Turn text from a flag or a variable into the number it shows, if it shows one."""
    if isinstance(value, str):
        for kind in (int, float):
            try:
                return kind(value)
            except ValueError:
                continue
    return value


def _take_count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 < value < 2**53 else None


def _take_amount(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < 1e12 else None


def _take_flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _take_names(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        return None
    return tuple(value)


def _take_pairs(value: object) -> Pairs | None:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        return None
    return tuple(value.items())


def _take_ways(value: object) -> tuple[str, ...] | None:
    names = _take_names(value)
    return names if names is not None and set(names) <= {"daemon", "child", "server"} else None


def _take_address(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _take_database(value: object) -> str | None:
    is_url = isinstance(value, str) and value.startswith(("postgresql://", "postgres://"))
    return value if isinstance(value, str) and (is_url or not value) else None


def _take_endpoint(value: object) -> str | None:
    is_url = isinstance(value, str) and value.startswith(("http://", "https://"))
    return value if isinstance(value, str) and (is_url or not value) else None


def _take_text(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value)  # one that reads as a number is still a text


def _take_zone(value: object) -> str | None:
    from zoneinfo import ZoneInfo  # only those who name a zone need it

    if not value and isinstance(value, str):
        return ""
    try:
        return str(ZoneInfo(value)) if isinstance(value, str) else None
    except (ValueError, OSError):
        return None


def _take_hours(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e6 else None


def _one_of(*choices: str) -> Callable[[object], Value]:
    return lambda value: value if isinstance(value, str) and value in choices else None


def _take_some_or_none(value: object) -> int | None:
    return 0 if value == 0 and not isinstance(value, bool) else _take_count(value)


def _take_port(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 2**16 else None


def _smallness(value: Value) -> float:
    return -math.inf if value is None or isinstance(value, tuple) else -float(value)


def _incomparable(_value: Value) -> float:
    """Return what is never as strict as anything: a project has no say in the matter."""
    return math.nan


def _truth(value: Value) -> float:
    return float(bool(value))


_MODES: Mapping[Value, float] = {"off": -1.0, "": 0.0, "on": 1.0}

COUNT = SettingKind("a whole number above 0", _take_count, _smallness, "smaller")
SOME_OR_NONE = SettingKind("a whole number", _take_some_or_none, _smallness, "smaller")
AMOUNT = SettingKind("a number above 0", _take_amount, _smallness, "smaller")
STRICT_WHEN_TRUE = SettingKind("true or false", _take_flag, _truth, "true")
STRICT_WHEN_FALSE = SettingKind("true or false", _take_flag, _smallness, "false")
OWN_FLAG = SettingKind("true or false", _take_flag, _incomparable)
OWN_COUNT = SettingKind("a whole number above 0", _take_count, _incomparable)
OWN_NAMES = SettingKind("a list of names", _take_names, _incomparable)
OWN_AMOUNT = SettingKind("a number above 0", _take_amount, _incomparable)
WAYS = SettingKind('a list of "daemon", "child" and "server"', _take_ways, _incomparable)
ADDRESS = SettingKind("the name or address of a host", _take_address, _incomparable)
DATABASE = SettingKind(
    "an address that begins with postgresql://", _take_database, _incomparable, is_secret=True
)
PORT = SettingKind("a port: 0 to 65535", _take_port, _incomparable)
SCOPE = SettingKind(
    '"shared" or "session"',
    _one_of("shared", "session"),
    lambda value: float(value == "session"),
    '"session"',
)
ON_FAILURE = SettingKind(
    '"refuse" or "continue"',
    _one_of("refuse", "continue"),
    lambda value: float(value == "refuse"),
    '"refuse"',
)
MODE = SettingKind('"on" or "off"', _one_of("on", "off"), lambda value: _MODES[value], '"on"')
OWN_PAIRS = SettingKind("a table of texts", _take_pairs, _incomparable)
SANDBOX = SettingKind(
    '"auto", "monty" or "cpython"', _one_of("auto", "monty", "cpython"), _incomparable
)
_ASKING: dict[object, int] = {"never": 0, "auto": 1, "always": 2}
APPROVALS = SettingKind(
    '"auto", "always" or "never"',
    _one_of("auto", "always", "never"),
    lambda value: _ASKING[value],
    '"always"',
)
SURFACE = SettingKind(
    '"code", "memory" or "graph"', _one_of("code", "memory", "graph"), _incomparable
)
LOGS = SettingKind('"text" or "json"', _one_of("text", "json"), _incomparable)
ENDPOINT = SettingKind("an address that begins with http", _take_endpoint, _incomparable)
OWN_TEXT = SettingKind("a text", _take_text, _incomparable)
ZONE = SettingKind('the name of a time zone, such as "Europe/Zurich"', _take_zone, _incomparable)
WEEKDAY = SettingKind('"monday" or "sunday"', _one_of("monday", "sunday"), _incomparable)
HOURS = SettingKind("a number of hours, 0 for never", _take_hours, _incomparable)
