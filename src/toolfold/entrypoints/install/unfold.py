"""Take toolfold out of a client and put its servers back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from toolfold.entrypoints.install.clients import ClientFile
from toolfold.entrypoints.install.entries import find_servers, is_own_entry
from toolfold.entrypoints.install.files import Files, naming, require_writable
from toolfold.entrypoints.install.fold import parse_document, read_document
from toolfold.entrypoints.install.records import (
    FileChange,
    FileRecord,
    FileRecords,
    MovedServer,
    digest_of,
    digest_of_text,
)
from toolfold.entrypoints.install.servertext import (
    ServerText,
    Table,
    require_servers,
    with_servers,
)
from toolfold.entrypoints.install.target import Target
from toolfold.storage.secrets import SecretStore


@dataclass(frozen=True, slots=True, kw_only=True)
class UninstallPlan:
    """What will be done to one place; nothing has happened yet."""

    place: ClientFile
    record: FileRecord
    was: str | None
    text: str | None
    """The client's file as it shall be; None to take it away."""

    is_exact: bool
    """Whether it becomes what it was before the first change, byte for byte."""

    back: tuple[MovedServer, ...]
    lost: tuple[tuple[MovedServer, str], ...]
    """Those that could not come back, each with the reason; their record is kept."""

    target: Target
    taken: tuple[str, ...]
    """Servers that leave toolfold's file again."""

    secrets: tuple[str, ...]
    """What install made of their tokens, which are back where they were."""

    kept: tuple[tuple[str, str], ...]
    """Servers that stay there although they are back in the client, each with the reason."""

    @property
    def rest(self) -> FileRecord:
        """What is left to be undone another time."""
        return self.record.waiting_for([moved for moved, _ in self.lost])


REMOVED: Final = "the user removed it from toolfold"
"""Why a server is not taken out of our file: it is not there."""


@dataclass(frozen=True, slots=True)
class Uninstaller:
    """Plans how to undo changes of clients, and undoes them."""

    files: Files
    records: FileRecords
    store: SecretStore

    def plan(self, place: ClientFile) -> UninstallPlan:
        """Find out what is to be undone.

        Raises:
            ConfigError: A file that would be changed cannot be; nothing has happened.
        """
        record = self.records.load(place)
        was, document = read_document(place, self.files)
        changes = [_Change(step, self.records.text_before(place, step)) for step in record.steps]
        with naming(place.path):
            text = _undo(place, was, changes) if changes else _bare(place, was, document)
            back, lost = _sorted_out(place, text, record)
        target = Target.read(place.target, self.files)
        target, taken, kept = self._give_back(place, target, back, [moved for moved, _ in lost])
        if text != was:
            require_writable(place.path)
        return UninstallPlan(
            place=place,
            record=record,
            was=was,
            text=text,
            is_exact=bool(changes) and text == changes[0].before,
            back=back,
            lost=lost,
            target=target,
            taken=taken,
            secrets=_unused(target, (each for each in back if each.alias in taken)),
            kept=kept,
        )

    def apply(self, plan: UninstallPlan) -> None:
        """Make the changes in the order in which a crash loses nothing."""
        if plan.text != plan.was:
            self.files.write(plan.place.path, plan.text, was=plan.was, private=False)
        if plan.target.is_empty and plan.record.made_target:
            plan.target.remove(self.files)
        else:
            plan.target.save(self.files)
            if plan.record.made_target and not plan.rest.steps:
                self.records.hand_on_target(plan.place)
        self.records.keep(plan.place, plan.rest)
        for name in () if self.files.dry_run else plan.secrets:
            self.store.remove(name)
        if plan.text is None and any(step.made_directory for step in plan.record.steps):
            self.files.remove_directory(plan.place.path.parent)

    def _give_back(
        self,
        place: ClientFile,
        target: Target,
        back: Sequence[MovedServer],
        lost: Sequence[MovedServer],
    ) -> tuple[Target, tuple[str, ...], tuple[tuple[str, str], ...]]:
        used = {a: each.title for each in self.records.sharers(place) for a in each.aliases}
        used |= {moved.alias: "a server that is not back" for moved in lost}
        taken: list[str] = []
        kept: list[tuple[str, str]] = []
        for alias, moved in {moved.alias: moved for moved in back}.items():
            if not moved.is_ours:
                continue
            if alias in used:
                kept.append((alias, f"{used[alias]} uses it too"))
            elif alias not in target.servers():
                kept.append((alias, REMOVED))
            elif not target.has_unchanged(alias, moved.digest):
                kept.append((alias, "it was changed there since"))
            else:
                target = target.without_server(alias)
                taken.append(alias)
        return target, tuple(taken), tuple(kept)


def _unused(target: Target, back: Iterable[MovedServer]) -> tuple[str, ...]:
    """Return the secrets of servers that are back which no other server names."""
    text = target.document.text
    names = dict.fromkeys(name for moved in back for name in moved.secrets)
    return tuple(name for name in names if f"${{keyring:{name}}}" not in text)


@dataclass(frozen=True, slots=True)
class _Change:
    """A step, and the client's file as it was before; None where there was none."""

    step: FileChange
    before: str | None


def _undo(place: ClientFile, text: str | None, changes: Sequence[_Change]) -> str | None:
    """Undo changes, the last one first."""
    for change in reversed(changes):
        if text is None:
            return None
        is_unchanged = digest_of_text(text) == change.step.after_sha256
        text = change.before if is_unchanged else _undo_in_place(place, text, change)
    return text


def _undo_in_place(place: ClientFile, text: str, change: _Change) -> str:
    """Undo one change in a text that was edited afterwards."""
    document, before = parse_document(place, text), parse_document(place, change.before or "")
    for table, after in change.step.tables:
        if after is not None and document.table_text(table) == after:
            document = document.with_table(table, before.table_text(table))
            require_servers(document, table, before.servers(table))
        else:
            document = _exchange(document, before, table, change.step)
    return document.text


def _exchange(
    document: ServerText, before: ServerText, table: Table, step: FileChange
) -> ServerText:
    present, were = document.servers(table), before.servers(table)
    is_own = step.own in present and is_own_entry(step.own, present[step.own])
    own = [step.own] if is_own and table == step.tables[0][0] else []
    back = [
        moved.name
        for moved in step.moved
        if moved.table == table and (moved.name not in present or moved.name in own)
    ]
    if not own and not back:
        return document
    edited = document.edited(table, own, {name: before.piece(table, name) for name in back})
    if edited.text == document.text:
        return document  # what held the table is gone, and they have no place
    require_servers(edited, table, with_servers(present, own, {name: were[name] for name in back}))
    is_left_over = not edited.servers(table) and before.table_text(table) is None
    return edited.with_table(table, None) if is_left_over else edited


def _bare(place: ClientFile, was: str | None, document: ServerText) -> str | None:
    """Take out an entry of ours that somebody wrote by hand."""
    own = [each for each in find_servers(place, document) if each.is_own]
    for entry in own:
        expected = with_servers(document.servers(entry.table), [entry.name], {})
        document = document.edited(entry.table, [entry.name], {})
        require_servers(document, entry.table, expected)
    return document.text if own else was


def _sorted_out(
    place: ClientFile, text: str | None, record: FileRecord
) -> tuple[tuple[MovedServer, ...], tuple[tuple[MovedServer, str], ...]]:
    """Return which servers the client's file holds again as they were, and why others are not."""
    document = parse_document(place, text or "")
    back: list[MovedServer] = []
    lost: list[tuple[MovedServer, str]] = []
    for moved in (each for step in record.steps for each in step.moved):
        servers = document.servers(moved.table)
        if moved.name not in servers:
            lost.append((moved, "its place in the file no longer exists"))
        elif digest_of(servers[moved.name]) != moved.written_digest:
            lost.append((moved, "another server has its name"))
        else:
            back.append(moved)
    return tuple(back), tuple(lost)
