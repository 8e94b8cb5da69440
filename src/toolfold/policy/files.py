"""The files that rules stand in: `policy.toml` of the user and of the project."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from toolfold.config.config import Config
from toolfold.errors import ConfigError
from toolfold.jsontypes import Json
from toolfold.policy.decide import Policy
from toolfold.policy.imported import ModulesOf, translated
from toolfold.policy.rules import CAREFUL, Action, Rule, careful, read_rules
from toolfold.storage.files import read_file

# Rules of a client about MCP tools as rules of ours. Pure.
#
# Clients write `mcp__SERVER__TOOL`, both as they are configured and listed. What closes may be
# taken for more than it says, what opens never.


NAME: Final = "policy.toml"
IMPORTED: Final = "imported-rules.json"
"""What `toolfold install` keeps of the rules that a client had."""
_KEYS: Final = frozenset({"policy", "keys", CAREFUL})


@dataclass(frozen=True, slots=True)
class RuleFile:
    """What one file says."""

    rules: tuple[Rule, ...] = ()
    keys: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)
    """By the id of an API key, what holds for its holder besides."""
    careful: tuple[Rule, ...] = ()
    """What the preset `careful` makes of it; nothing where it is not set."""


class PolicyFiles:
    """Reads the files again when they have changed."""

    def __init__(self, config: Config, *, modules_of: ModulesOf = lambda server: [server]) -> None:
        """Read what holds in a configuration; `modules_of` names the modules of a server."""
        project = config.project
        self.imported = config.directories.config / IMPORTED
        self._project = project
        self._modules_of = modules_of
        self._taken: tuple[object, tuple[Rule, ...]] = None, ()
        self.paths = [config.directories.config / NAME]
        if project is not None:
            self.paths.append(project / ".toolfold" / NAME)
        self._approvals = config.settings.approvals
        self._seen: dict[Path, tuple[object, RuleFile]] = {}

    def policy(self, client: str = "", *, has_decided: bool = False) -> Policy:
        """Return what holds now for a client, as the journal names it.

        A client `has_decided` where its user was asked about the program as a whole, or lets it
        run unasked, and cannot be asked about single tools: then only rules of the user's ask.

        Raises:
            ConfigError: A file cannot be understood: nothing is allowed until it can.
        """
        user, *project = (self._read(path) for path in self.paths)
        key = client.removeprefix("key:") if client.startswith("key:") else None
        own = [each.keys[key] for each in (user, *project) if key in each.keys] if key else []
        rules = (*user.rules, *self.client_rules())
        presets = [each.careful for each in (user, *project) if each.careful]
        policy = Policy(
            rules,
            (*(each.rules for each in project), *own, *presets),
            is_careful=bool(presets),
            may_trust_client=self._approvals == "auto",
        )
        is_trusted = self._approvals == "never" or (self._approvals == "auto" and has_decided)
        return policy._replace(built_in=()) if is_trusted else policy

    def client_rules(self) -> tuple[Rule, ...]:
        """Return what denies and asks of the rules that clients had when toolfold was installed.

        They come after the user's own: the first that fits decides.

        Raises:
            ConfigError: The file cannot be understood.
        """
        stamp = _stamp(self.imported)
        if self._taken[0] != stamp:
            self._taken = stamp, self._take_over()
        return self._taken[1]

    def _take_over(self) -> tuple[Rule, ...]:
        kept = [each for each in read_imported(self.imported) if self._holds_here(each)]
        found = translated(kept, modules_of=self._modules_of)
        return tuple(
            Rule(Action[action.upper()], tools=(pattern,), origin="your client's own rule")
            for action, pattern in found.rules
            if action != "allow"
        )

    def _holds_here(self, entry: Json) -> bool:
        """Whether a rule is the user's, or of this project."""
        if not isinstance(entry, dict) or entry.get("scope") == "user":
            return True
        return self._project is not None and self._project in Path(str(entry["source"])).parents

    def _read(self, path: Path) -> RuleFile:
        stamp = _stamp(path)
        known = self._seen.get(path)
        if known is None or known[0] != stamp:
            known = self._seen[path] = (stamp, read_policy(path))
        return known[1]


def read_imported(path: Path) -> list[Json]:
    """Return the rules of clients that were kept when toolfold was installed.

    Raises:
        ConfigError: The file cannot be understood.
    """
    content = read_file(path)
    try:
        kept: Json = json.loads(content) if content else {"rules": []}
    except ValueError as error:
        raise _closed(f"{path} is not valid JSON: {error}") from error
    rules = kept.get("rules") if isinstance(kept, dict) else None
    if not isinstance(rules, list):
        raise _closed(f'{path} does not hold {{"rules": [...]}}')
    return rules


def read_policy(path: Path) -> RuleFile:
    """Read one file; one that is not there says nothing.

    Raises:
        ConfigError: It cannot be understood.
    """
    try:
        content = read_file(path)
        values = {} if content is None else tomllib.loads(content.decode())
    except (ConfigError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _closed(f"{path}: {error}") from error
    try:
        return _read_values(values, path)
    except ConfigError as error:
        raise _closed(str(error)) from error


def _closed(fault: str) -> ConfigError:
    return ConfigError(
        f"{fault.rstrip('.')}. No tool is called until this is fixed; `toolfold doctor` shows "
        "whether it is."
    )


def _read_values(values: dict[str, Any], path: Path) -> RuleFile:
    if unknown := sorted(values.keys() - _KEYS):
        raise ConfigError(
            f"{path}: {unknown[0]!r} is unknown; there are {CAREFUL}, [[policy]] and [[keys.ID]]"
        )
    keys = values.get("keys", {})
    if not isinstance(keys, dict):
        raise ConfigError(f"{path}: keys is a table of lists, [[keys.ID]]")
    rules = read_rules(values.get("policy", []), origin=str(path))
    is_careful = CAREFUL in values
    return RuleFile(
        rules=rules,
        careful=careful(values[CAREFUL], rules, origin=str(path)) if is_careful else (),
        keys={key: read_rules(rules, origin=f"{path}, {key}") for key, rules in keys.items()},
    )


def _stamp(path: Path) -> object:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


# Write a rule about one tool into the text of `policy.toml`, or take it out. Pure.
#
# All else of the text stays as it is, comments included.
