"""Put toolfold's hooks into the settings of Claude Code, and take them out."""

import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolfold.entrypoints.install.clients import ClientFile, InstallContext, claude_directory
from toolfold.entrypoints.install.files import Files, naming, require_writable
from toolfold.entrypoints.install.jsontext import JsonText
from toolfold.entrypoints.install.own import own_command
from toolfold.entrypoints.install.records import digest_of_text
from toolfold.errors import ConfigError
from toolfold.jsontypes import Json, JsonObject
from toolfold.relay.hooks.log import HookLog
from toolfold.relay.hooks.settings import HookOptions, read_hook_options

_TABLE: Final = ("hooks",)
_GRACE_S: Final = 2
_OWN: Final = re.compile(
    r"toolfold[\"']?\s+hook\s+(session-start|prompt|pre-tool-use|pre-compact|session-end)\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """One event of the client, and our hook for it."""

    hook: str
    timeout_s: int
    """Of the client, at least; it is longer than our own."""

    matcher: str = ""


_EVENTS: Final[Mapping[str, _Event]] = {
    # One that is resumed still has the notes that it began with.
    "SessionStart": _Event(hook="session-start", timeout_s=15, matcher="startup|clear|compact"),
    "UserPromptSubmit": _Event(hook="prompt", timeout_s=5),
    "PreToolUse": _Event(
        hook="pre-tool-use", timeout_s=5, matcher="mcp__(plugin_toolfold_)?toolfold__execute_code"
    ),
    "PreCompact": _Event(hook="pre-compact", timeout_s=15),
    "SessionEnd": _Event(hook="session-end", timeout_s=5),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HooksPlan:
    """What will be done to the client's settings; nothing has happened yet."""

    path: Path
    was: str | None
    text: str | None
    """As it shall be; None for no file."""

    backup: Path
    kept: str | None
    """What our record says from then on; None for no record."""

    is_adding: bool
    made_directory: bool = False
    """Whether the directory of the settings was not there before install."""

    @property
    def is_changed(self) -> bool:
        """Whether the settings will be others."""
        return self.text != self.was

    def describe(self) -> Iterator[str]:
        """Yield the lines of what will be done."""
        if self.is_changed:
            verb = "adds" if self.is_adding else "removes"
            yield f"  {verb:<11} {len(_EVENTS)} session hooks: {self.path}"
        elif self.is_adding:
            yield f"  hooks       nothing to change: they are in {self.path}"

    def apply(self, files: Files) -> None:
        """Make the changes in the order in which a crash loses nothing."""
        if self.is_adding:
            self._write_record(files)
        if self.is_changed:
            files.write(self.path, self.text, was=self.was, private=False)
        if not self.is_adding:
            self._write_record(files)
            if self.made_directory and self.text is None:
                files.remove_directory(self.path.parent)

    def _write_record(self, files: Files) -> None:
        was = files.read(self.backup, max_bytes=None)
        if self.kept != was:
            files.write(self.backup, self.kept, was=was, private=True)


def plan_adding(place: ClientFile, context: InstallContext, files: Files) -> HooksPlan:
    """Find out what is to be added to the settings of Claude Code.

    Raises:
        ConfigError: They cannot be read or written; nothing has happened.
    """
    path, backup = _paths(place, context)
    was = files.read(path)
    with naming(path):
        document = JsonText.parse(was or "")
        text = _with_own(document, own_command(context.environ), _options(context)).text
    kept = files.read(backup, max_bytes=None)
    if text == was:
        return HooksPlan(path=path, was=was, text=was, backup=backup, kept=kept, is_adding=True)
    require_writable(path)
    record = {
        "before": _first_before(kept, was),
        "after_sha256": digest_of_text(text),
        "made_directory": _made_directory(_record(kept)) or not path.parent.exists(),
    }
    kept = json.dumps(record) + "\n"
    return HooksPlan(path=path, was=was, text=text, backup=backup, kept=kept, is_adding=True)


def plan_removing(place: ClientFile, context: InstallContext, files: Files) -> HooksPlan:
    """Find out what is to be taken out; to the byte as it was, if nobody has changed it since.

    Raises:
        ConfigError: As `plan_adding`.
    """
    path, backup = _paths(place, context)
    was = files.read(path)
    record = _record(files.read(backup, max_bytes=None))
    text = was
    if was is not None:
        if record and record.get("after_sha256") == digest_of_text(was):
            text = _text(record.get("before"))
        else:
            with naming(path):
                text = _without_own(JsonText.parse(was)).text
    if text != was:
        require_writable(path)
    return HooksPlan(
        path=path,
        was=was,
        text=text,
        backup=backup,
        kept=None,
        is_adding=False,
        made_directory=_made_directory(record),
    )


def _paths(place: ClientFile, context: InstallContext) -> tuple[Path, Path]:
    """Return the settings, and our record of them. Those of a project are this user's alone."""
    if place.scope == "project":
        path = context.project / ".claude" / "settings.local.json"
    else:
        path = claude_directory(context) / "settings.json"
    name = f"claude-hooks-{digest_of_text(str(path))[:8]}.txt"
    return path, context.directories.state / "backups" / name


def _options(context: InstallContext) -> HookOptions:
    """Return the user's own settings of hooks, as hooks read them."""
    return read_hook_options(context.environ, HookLog(context.environ, "install"))


def _with_own(document: JsonText, command: list[str], options: HookOptions) -> JsonText:
    """Return the document with our hooks, each behind those of others for the same event."""
    present = document.servers(_TABLE)
    pieces, gone = {}, []
    for name, event in _EVENTS.items():
        wanted = _entry(event, command, options)
        entries = _entries(present, name)
        if wanted in entries:
            continue
        entries = [*_others(entries), wanted]
        pieces[name] = document.render(_TABLE, name, entries)
        gone += [name] if name in present else []
    for name, piece in pieces.items():
        document = document.edited(_TABLE, [name] if name in gone else [], {name: piece})
    return document


def _without_own(document: JsonText) -> JsonText:
    present = document.servers(_TABLE)
    for name in [name for name in _EVENTS if name in present]:
        entries = _entries(present, name)
        others = _others(entries)
        if others == entries:
            continue
        pieces = {name: document.render(_TABLE, name, others)} if others else {}
        document = document.edited(_TABLE, [name], pieces)
    if present and not document.servers(_TABLE):
        document = document.with_table(_TABLE, None)
    return document


def _entry(event: _Event, command: list[str], options: HookOptions) -> JsonObject:
    line = shlex.join([*command, "hook", event.hook])
    # The end of a session is waited for a second at most, whatever the timeout.
    own_s = 0 if event.hook == "session-end" else math.ceil(options.timeout_of(event.hook))
    timeout_s = max(event.timeout_s, own_s + _GRACE_S)
    inner: JsonObject = {"type": "command", "command": line, "timeout": timeout_s}
    return {**({"matcher": event.matcher} if event.matcher else {}), "hooks": [inner]}


def _entries(present: JsonObject, name: str) -> list[Json]:
    entries = present.get(name, [])
    if not isinstance(entries, list):
        raise ConfigError(f"`hooks.{name}` must be a list")
    return entries


def _others(entries: list[Json]) -> list[Json]:
    """Return what is left without our hooks; one that holds others too keeps those."""
    left: list[Json] = []
    for entry in entries:
        inner = entry.get("hooks") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(inner, list):
            left.append(entry)
            continue
        rest = [each for each in inner if not _is_own(each)]
        if rest:
            left.append({**entry, "hooks": rest})
        elif not inner:
            left.append(entry)
    return left


def _is_own(hook: Json) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and _OWN.search(command) is not None


def _first_before(kept: str | None, was: str | None) -> str | None:
    """Return the text before our first change, if nothing but that change was made since."""
    record = _record(kept)
    if record and was is not None and record.get("after_sha256") == digest_of_text(was):
        return _text(record.get("before"))
    return was


def _made_directory(record: JsonObject) -> bool:
    return record.get("made_directory") is True


def _record(text: str | None) -> JsonObject:
    try:
        record = json.loads(text or "{}")
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
