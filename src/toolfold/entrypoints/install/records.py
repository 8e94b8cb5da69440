"""What was changed in which file, so that it can be undone: one file for each, in `backups`."""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from toolfold.entrypoints.install.clients import Place
from toolfold.entrypoints.install.files import Files
from toolfold.entrypoints.install.servertext import Table
from toolfold.errors import ConfigError
from toolfold.jsontypes import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A server that left a client's file."""

    table: Table
    name: str
    alias: str
    """Its name in toolfold's file."""

    digest: str
    """Of what toolfold's file said of it."""

    is_ours: bool
    """Whether it is in toolfold's file because of an install, and not by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change of a client's file."""

    before: str | None
    """The whole text; None where there was no file."""

    after_sha256: str
    tables: tuple[tuple[Table, str | None], ...]
    """What the tables of servers looked like afterwards."""

    own: str
    """The name of our entry; empty where it was there already."""

    moved: tuple[Moved, ...]
    made_target: bool
    """Whether toolfold's file was not there before."""

    keeps_servers: bool
    """Whether the user wanted the client's servers to stay where they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """All changes of one file, in order."""

    client: str
    scope: str
    path: str
    target: str
    """toolfold's file, which has the servers now."""

    steps: tuple[Step, ...]

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

    def with_step(self, step: Step) -> "Record":
        """Return the record with one more change."""
        return replace(self, steps=(*self.steps, step))


class Records:
    """The records of one user."""

    def __init__(self, state: Path, files: Files) -> None:
        self._directory = state / "backups"
        self._files = files

    def path_of(self, place: Place) -> Path:
        """Return where the record of a place is kept."""
        digest = hashlib.sha256(str(place.path).encode()).hexdigest()[:8]
        return self._directory / f"{place.client}-{place.scope}-{digest}.json"

    def load(self, place: Place) -> Record:
        """Return the record of a place, which has no steps where nothing was changed.

        Raises:
            ConfigError: Our own file is broken.
        """
        return self._read(self.path_of(place)) or Record(
            client=place.client,
            scope=place.scope,
            path=str(place.path),
            target=str(place.target),
            steps=(),
        )

    def sharers(self, place: Place) -> list[Record]:
        """Return the records of all other places whose servers are in the same file of ours."""
        paths = sorted(self._directory.glob("*.json")) if self._directory.is_dir() else []
        found = [self._read(path) for path in paths if path != self.path_of(place)]
        return [record for record in found if record and record.target == str(place.target)]

    def save(self, place: Place, record: Record) -> None:
        """Write the record."""
        self._write(self.path_of(place), json.dumps(asdict(record), indent=1) + "\n")

    def forget(self, place: Place) -> None:
        """Remove the record, once all is undone."""
        self._write(self.path_of(place), None)

    def _write(self, path: Path, text: str | None) -> None:
        self._files.write(path, text, was=self._files.read(path), private=True)

    def _read(self, path: Path) -> Record | None:
        text = self._files.read(path)
        try:
            return None if text is None else _parse(json.loads(text))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ConfigError(
                f"{path} is not a record that toolfold wrote: {error}. The text before each change "
                f"stands in it as `before`; move it away to go on without."
            ) from error


def digest_of(entry: Json) -> str:
    """Return what changes when an entry does."""
    return hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()


def digest_of_text(text: str) -> str:
    """Return the digest of a file's bytes."""
    return hashlib.sha256(text.encode()).hexdigest()


def _parse(value: dict[str, Any]) -> Record:
    return Record(**{**value, "steps": tuple(map(_parse_step, value["steps"]))})


def _parse_step(value: dict[str, Any]) -> Step:
    moved = tuple(Moved(**{**each, "table": tuple(each["table"])}) for each in value["moved"])
    tables = tuple((tuple(table), text) for table, text in value["tables"])
    return Step(**{**value, "moved": moved, "tables": tables})
