"""Rules of Claude Code about MCP tools, kept for toolfold: moving must not open what was closed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from toolfold.config.jsonc import parse_jsonc
from toolfold.entrypoints.install.clients import (
    ClientFile,
    InstallContext,
    InstallScope,
    claude_directory,
)
from toolfold.entrypoints.install.files import Files
from toolfold.errors import ConfigError
from toolfold.jsontypes import Json, JsonObject

_LISTS = ("allow", "deny", "ask")
_OWN = ("mcp__toolfold", "mcp__plugin_toolfold")


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesPlan:
    """Which rules are to be kept, and where."""

    path: Path
    was: str | None
    kept: tuple[JsonObject, ...]
    """Those in the file already."""

    added: tuple[JsonObject, ...]
    unread: tuple[str, ...]
    """Why some settings could not be read for rules."""

    def save(self, files: Files) -> None:
        """Write the file if there is anything to add."""
        if self.added:
            text = json.dumps({"rules": [*self.kept, *self.added]}, indent=2, ensure_ascii=False)
            files.write(self.path, text + "\n", was=self.was, private=True)


def plan_rules(place: ClientFile, context: InstallContext, files: Files) -> RulesPlan:
    """Find the rules about MCP tools that the client's settings hold and our file does not.

    Raises:
        ConfigError: Our file is there and cannot be read.
    """
    path = context.directories.config / "imported-rules.json"
    was = files.read(path)
    kept = _parse_kept(path, was)
    found, unread = _find_rules(place, context, files)
    added = tuple(rule for rule in found if rule not in kept)
    return RulesPlan(path=path, was=was, kept=kept, added=added, unread=tuple(unread))


def forget_rules(place: ClientFile, context: InstallContext, files: Files) -> int:
    """Take the rules of a client out of our file, whose servers are its own again; say how many.

    Raises:
        ConfigError: Our file cannot be read.
    """
    path = context.directories.config / "imported-rules.json"
    was = files.read(path)
    kept = _parse_kept(path, was)
    sources = set(map(str, settings_files(place, context)))
    left = [rule for rule in kept if rule.get("source") not in sources]
    if len(left) < len(kept):
        text = json.dumps({"rules": left}, indent=2, ensure_ascii=False) + "\n" if left else None
        files.write(path, text, was=was, private=True)
    return len(kept) - len(left)


def _find_rules(
    place: ClientFile, context: InstallContext, files: Files
) -> tuple[list[JsonObject], list[str]]:
    rules: list[JsonObject] = []
    unread: list[str] = []
    for path, scope in settings_files(place, context).items():
        try:
            rules += _rules_in(path, files.read(path), scope)
        except ConfigError as error:
            unread.append(str(error))
    return rules, unread


def settings_files(place: ClientFile, context: InstallContext) -> dict[Path, InstallScope]:
    """Return the settings of Claude Code that hold here, and where each does."""
    if place.client != "claude":
        return {}
    project, user = context.project / ".claude", claude_directory(context) / "settings.json"
    found: dict[Path, InstallScope] = {user: "user"}
    for name in ("settings.json", "settings.local.json"):
        found.setdefault(project / name, "project")  # the home may be a project
    return found


def _rules_in(path: Path, text: str | None, scope: InstallScope) -> list[JsonObject]:
    if text is None or not text.strip():
        return []
    try:
        root = parse_jsonc(text.encode()).value
    except ConfigError as error:
        raise ConfigError(f"{path} {error}") from error
    permissions = root.get("permissions") if isinstance(root, dict) else None
    return [
        {"source": str(path), "scope": scope, "list": name, "rule": rule}
        for name in _LISTS
        for rule in _rules(permissions, name)
    ]


def _rules(permissions: Json, name: str) -> Iterator[str]:
    listed = permissions.get(name) if isinstance(permissions, dict) else None
    for rule in listed if isinstance(listed, list) else []:
        if isinstance(rule, str) and rule.startswith("mcp__") and not rule.startswith(_OWN):
            yield rule


def _parse_kept(path: Path, text: str | None) -> tuple[JsonObject, ...]:
    if text is None:
        return ()
    try:
        root = parse_jsonc(text.encode()).value
        rules = root.get("rules") if isinstance(root, dict) else None
        if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
            raise ConfigError('does not hold {"rules": [...]}')
    except ConfigError as error:
        raise ConfigError(
            f"{path} {error}. Nothing was changed: mend it or move it away."
        ) from error
    return tuple(rule for rule in rules if isinstance(rule, dict))
