"""What was changed in which file, so that it can be undone.

Each file has a record in `backups`, and beside it the texts that it had before each change.
"""

import hashlib
import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from toolfold.entrypoints.install.clients import ClientFile
from toolfold.entrypoints.install.files import Files
from toolfold.entrypoints.install.servertext import Table
from toolfold.errors import ConfigError
from toolfold.jsontypes import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedServer:
    """A server that left a client's file."""

    table: Table
    name: str
    alias: str
    """Its name in toolfold's file."""

    digest: str
    """Of what toolfold's file said of it."""

    written_digest: str
    """Of what the client's file said of it."""

    is_ours: bool
    """Whether it is in toolfold's file because of an install, and not by hand."""

    secrets: tuple[str, ...] = ()
    """The names of the secrets that its tokens became."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One change of a client's file."""

    before_sha256: str | None
    """Of the whole text; None where there was no file."""

    after_sha256: str
    tables: tuple[tuple[Table, str | None], ...]
    """What the tables of servers looked like afterwards."""

    own: str
    """The name of our entry; empty where it was there already."""

    moved: tuple[MovedServer, ...]
    made_target: bool
    """Whether toolfold's file was not there before."""

    keeps_servers: bool
    """Whether the user wanted the client's servers to stay where they are."""

    made_directory: bool = False
    """Whether the directory of the client's file was not there before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    """All changes of one file, in order."""

    client: str
    scope: str
    path: str
    target: str
    """toolfold's file, which has the servers now."""

    steps: tuple[FileChange, ...]
    is_undone: bool = False
    """Whether toolfold was taken out again, and only servers that are not back keep this."""

    @property
    def is_installed(self) -> bool:
        """Whether install put toolfold there, and nobody took it out by uninstall."""
        return bool(self.steps) and not self.is_undone

    @property
    def title(self) -> str:
        """How the place is called in what we print."""
        return f"{self.client} ({self.scope})"

    @property
    def aliases(self) -> set[str]:
        """The servers in toolfold's file that came from here."""
        return {moved.alias for step in self.steps for moved in step.moved}

    @property
    def own_aliases(self) -> set[str]:
        """Those of them that nobody wrote there by hand."""
        return {moved.alias for step in self.steps for moved in step.moved if moved.is_ours}

    @property
    def made_target(self) -> bool:
        """Whether toolfold's file is there because of an install."""
        return any(step.made_target for step in self.steps)

    def with_step(self, step: FileChange) -> "FileRecord":
        """Return the record with one more change."""
        return replace(self, steps=(*self.steps, step), is_undone=False)

    def with_made_target(self) -> "FileRecord":
        """Return the record so that the last of its servers takes toolfold's file along."""
        first, *others = self.steps
        return replace(self, steps=(replace(first, made_target=True), *others))

    def waiting_for(self, lost: Collection[MovedServer]) -> "FileRecord":
        """Return what is left of the record when all but these servers are back."""
        left = (
            replace(step, moved=tuple(moved for moved in step.moved if moved in lost))
            for step in self.steps
        )
        rest = replace(self, steps=tuple(step for step in left if step.moved), is_undone=True)
        return rest.with_made_target() if rest.steps and self.made_target else rest


class FileRecords:
    """The records of one user."""

    def __init__(self, state: Path, files: Files) -> None:
        self._directory = state / "backups"
        self._files = files

    def path_of(self, place: ClientFile) -> Path:
        """Return where the record of a place is kept."""
        return self._path(place.client, place.scope, str(place.path))

    def load(self, place: ClientFile) -> FileRecord:
        """Return the record of a place, which has no steps where nothing was changed.

        Raises:
            ConfigError: Our own file is broken.
        """
        return self._read(self.path_of(place)) or FileRecord(
            client=place.client,
            scope=place.scope,
            path=str(place.path),
            target=str(place.target),
            steps=(),
        )

    def sharers(self, place: ClientFile) -> list[FileRecord]:
        """Return the records of all other places whose servers are in the same file of ours."""
        paths = sorted(self._directory.glob("*.json")) if self._directory.is_dir() else []
        found = [self._read(path) for path in paths if path != self.path_of(place)]
        return [record for record in found if record and record.target == str(place.target)]

    def text_before(self, place: ClientFile, step: FileChange) -> str | None:
        """Return the client's file as it was before a change; None where there was none.

        Raises:
            ConfigError: The text is not there, or was changed.
        """
        if step.before_sha256 is None:
            return None
        path = self._text_path(place, step.before_sha256)
        text = self._files.read(path, max_bytes=None)
        if text is None or digest_of_text(text) != step.before_sha256:
            raise ConfigError(
                f"{path}, the text of {place.path} before a change, is gone or was changed. "
                f"Nothing was undone: restore it, or move {self.path_of(place)} away to go on "
                f"without."
            )
        return text

    def add(self, place: ClientFile, step: FileChange, *, before: str | None) -> None:
        """Write down one more change, before it is made."""
        if step.before_sha256 is not None:
            self._write(self._text_path(place, step.before_sha256), before)
        self._save(self.load(place).with_step(step))

    def keep(self, place: ClientFile, record: FileRecord) -> None:
        """Write what is left of a record, and forget the texts that it does not need."""
        if record.steps:
            self._save(record)
        else:
            self._write(self.path_of(place), None)
        used = {self._text_path(place, step.before_sha256 or "") for step in record.steps}
        for path in self._directory.glob(f"{self.path_of(place).stem}-*.before"):
            if path not in used:
                self._write(path, None)

    def hand_on_target(self, place: ClientFile) -> None:
        """Let another place take toolfold's file along that the install of this one made."""
        others = [record for record in self.sharers(place) if record.steps]
        if others:
            self._save(others[0].with_made_target())

    def _save(self, record: FileRecord) -> None:
        path = self._path(record.client, record.scope, record.path)
        self._write(path, json.dumps(asdict(record), indent=1) + "\n")

    def _path(self, client: str, scope: str, path: str) -> Path:
        digest = hashlib.sha256(path.encode()).hexdigest()[:8]
        return self._directory / f"{client}-{scope}-{digest}.json"

    def _text_path(self, place: ClientFile, sha256: str) -> Path:
        return self._directory / f"{self.path_of(place).stem}-{sha256[:16]}.before"

    def _write(self, path: Path, text: str | None) -> None:
        was = self._files.read(path, max_bytes=None)
        if text != was:
            self._files.write(path, text, was=was, private=True)

    def _read(self, path: Path) -> FileRecord | None:
        text = self._files.read(path, max_bytes=None)
        try:
            return None if text is None else _parse(json.loads(text))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ConfigError(
                f"{path} is not a record that toolfold wrote: {error}. The texts before each "
                f"change are in the files `.before` beside it; move it away to continue without it."
            ) from error


def digest_of(entry: Json) -> str:
    """Return what changes when an entry does."""
    return hashlib.sha256(json.dumps(entry, sort_keys=True, default=str).encode()).hexdigest()


def digest_of_text(text: str) -> str:
    """Return the digest of a file's bytes."""
    return hashlib.sha256(text.encode()).hexdigest()


def _parse(value: dict[str, Any]) -> FileRecord:
    return FileRecord(**{**value, "steps": tuple(map(_parse_step, value["steps"]))})


def _parse_step(value: dict[str, Any]) -> FileChange:
    moved = tuple(map(_parse_moved, value["moved"]))
    tables = tuple((tuple(table), text) for table, text in value["tables"])
    return FileChange(**{**value, "moved": moved, "tables": tables})


def _parse_moved(value: dict[str, Any]) -> MovedServer:
    lists = {"table": tuple(value["table"]), "secrets": tuple(value.get("secrets", ()))}
    return MovedServer(**{**value, **lists})
