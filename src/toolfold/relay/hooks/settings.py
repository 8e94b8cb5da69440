"""What a hook must know of the settings before it has asked anybody.

The daemon reads the rest, and knows better what a project says. A file that says nothing of hooks
is not even parsed: that would take as long as all the rest.
"""

import os

from toolfold.relay.hooks.log import HookLog
from toolfold.relay.manifest import deciding_project
from toolfold.relay.paths import find_directories

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

WAYS = ("daemon", "child", "server")
TIMEOUT_S = 10.0
PROMPT_TIMEOUT_S = 3.0
BUDGET_TOKENS = 900
NOTES = 8

_MAX_TIMEOUT_S = 600.0
_MAX_FILE = 1_000_000


class HookOptions:
    """What the user wants of hooks; what does not fit is logged and left as it is by default."""

    def __init__(self, table: "Mapping[str, Any]", log: HookLog) -> None:
        self._table = table
        self._log = log
        self.timeout_s = self._seconds("timeout_s", TIMEOUT_S)
        self.prompt_timeout_s = self._seconds("prompt_timeout_s", PROMPT_TIMEOUT_S)
        self.ways = self._ways()
        self.server = self._text("server")
        self.metrics = table.get("metrics") is True
        self.budget_tokens = self._count("budget_tokens", BUDGET_TOKENS)
        self.notes = self._count("notes", NOTES)

    def is_on(self, hook: str) -> bool:
        """Whether a hook shall do anything."""
        return self._table.get(hook.replace("-", "_")) is not False

    def timeout_of(self, hook: str) -> float:
        """Return how long the client may be kept waiting by a hook."""
        return self.prompt_timeout_s if hook in {"prompt", "pre-tool-use"} else self.timeout_s

    def _seconds(self, name: str, default: float) -> float:
        value = self._table.get(name, default)
        try:
            seconds = float(value)
        except (TypeError, ValueError):
            seconds = 0.0
        if 0 < seconds <= _MAX_TIMEOUT_S:
            return seconds
        return float(self._default(name, value, default))

    def _count(self, name: str, default: int) -> int:
        value = self._table.get(name, default)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
        return int(self._default(name, value, default))

    def _ways(self) -> list[str]:
        value = self._table.get("ways", list(WAYS))
        if isinstance(value, list) and all(way in WAYS for way in value):
            return list(value)
        return list(self._default("ways", value, WAYS))

    def _text(self, name: str) -> str:
        value = self._table.get(name, "")
        return value if isinstance(value, str) else str(self._default(name, value, ""))

    def _default(self, name: str, value: object, default: "Any") -> "Any":
        self._log.failed("settings", f"hooks.{name} cannot be {value!r}.")
        return default


def read_hook_options(environ: "Mapping[str, str]", log: HookLog) -> HookOptions:
    """Read the user's file, and the environment, which comes before it.

    Raises:
        Misplaced: There is no place where the file could be.
    """
    table = _table(os.path.join(find_directories(environ)["config"], "config.toml"), log)
    for name in ("timeout_s", "prompt_timeout_s", "server"):
        if (value := environ.get(f"TOOLFOLD_HOOKS_{name.upper()}")) is not None:
            table[name] = value
    options = HookOptions(table, log)
    if environ.get("TOOLFOLD_NO_DAEMON", "") not in {"", "0"}:
        options.ways = [way for way in options.ways if way != "daemon"]
    return options


def is_off_in_project(hook: str, cwd: str, log: HookLog) -> bool:
    """Whether the project around `cwd` wants nothing of a hook. Nobody can overrule that here."""
    project = deciding_project(cwd)
    if not project:
        return False
    table = _table(os.path.join(project, ".toolfold", "config.toml"), log)
    return not HookOptions(table, log).is_on(hook)


def _table(path: str, log: HookLog) -> "dict[str, Any]":
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_FILE)
    except FileNotFoundError:
        return {}
    except OSError as error:
        log.failed("settings", f"{path}: {error.strerror}.")
        return {}
    if b"hooks" not in content:
        return {}
    import tomllib

    try:
        table = tomllib.loads(content.decode()).get("hooks", {})
    except (ValueError, RecursionError) as error:
        log.failed("settings", f"{path}: {error}.")
        return {}
    return dict(table) if isinstance(table, dict) else {}
