"""Take toolfold out of a client and put its servers back."""

from collections.abc import Sequence
from dataclasses import dataclass

from toolfold.entrypoints.install.clients import Place
from toolfold.entrypoints.install.entries import find_servers, is_own_entry
from toolfold.entrypoints.install.files import Files, naming, require_writable
from toolfold.entrypoints.install.fold import parse_document, read_document
from toolfold.entrypoints.install.records import Moved, Record, Records, Step, digest_of_text
from toolfold.entrypoints.install.servertext import ServerText, Table
from toolfold.entrypoints.install.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfoldPlan:
    """What will be done to one place; nothing has happened yet."""

    place: Place
    record: Record
    was: str | None
    text: str | None
    """The client's file as it shall be; None to take it away."""

    is_exact: bool
    """Whether it becomes what it was before the first change, byte for byte."""

    back: tuple[Moved, ...]
    lost: tuple[Moved, ...]
    """Those that found no place any more; they stay in toolfold's file."""

    target: Target
    taken: tuple[str, ...]
    """Servers that leave toolfold's file again."""

    kept: tuple[tuple[str, str], ...]
    """Servers that stay there although they are back in the client, each with the reason."""


@dataclass(frozen=True, slots=True)
class Unfolder:
    """Plans how to undo changes of clients, and undoes them."""

    files: Files
    records: Records

    def plan(self, place: Place) -> UnfoldPlan:
        """Find out what is to be undone.

        Raises:
            ConfigError: A file that would be changed cannot be; nothing has happened.
        """
        record = self.records.load(place)
        was, document = read_document(place, self.files)
        with naming(place.path):
            text = _undo(place, was, record.steps) if record.steps else _bare(place, was, document)
            back, lost = _sorted_out(place, text, record)
        target = Target.read(place.target, self.files)
        target, taken, kept = self._give_back(place, target, back)
        if text != was:
            require_writable(place.path)
        return UnfoldPlan(
            place=place,
            record=record,
            was=was,
            text=text,
            is_exact=bool(record.steps) and text == record.steps[0].before,
            back=back,
            lost=lost,
            target=target,
            taken=taken,
            kept=kept,
        )

    def apply(self, plan: UnfoldPlan) -> None:
        """Make the changes in the order in which a crash loses nothing."""
        if plan.text != plan.was:
            self.files.write(plan.place.path, plan.text, was=plan.was, private=False)
        if plan.target.is_empty and any(step.made_target for step in plan.record.steps):
            plan.target.remove(self.files)
        else:
            plan.target.save(self.files)
        self.records.forget(plan.place)

    def _give_back(
        self, place: Place, target: Target, back: Sequence[Moved]
    ) -> tuple[Target, tuple[str, ...], tuple[tuple[str, str], ...]]:
        used = {a: each.title for each in self.records.sharers(place) for a in each.aliases}
        taken: list[str] = []
        kept: list[tuple[str, str]] = []
        for alias, moved in {moved.alias: moved for moved in back}.items():
            if not moved.is_ours:
                continue
            if alias in used:
                kept.append((alias, f"{used[alias]} uses it too"))
            elif not target.has_unchanged(alias, moved.digest):
                kept.append((alias, "it was changed there since"))
            else:
                target = target.without_server(alias)
                taken.append(alias)
        return target, tuple(taken), tuple(kept)


def _undo(place: Place, text: str | None, steps: Sequence[Step]) -> str | None:
    """Undo changes, the last one first."""
    for step in reversed(steps):
        if text is None:
            return None
        is_unchanged = digest_of_text(text) == step.after_sha256
        text = step.before if is_unchanged else _undo_in_place(place, text, step)
    return text


def _undo_in_place(place: Place, text: str, step: Step) -> str:
    """Undo one change in a text that was edited afterwards."""
    document, before = parse_document(place, text), parse_document(place, step.before or "")
    for table, after in step.tables:
        if after is not None and document.table_text(table) == after:
            document = document.with_table(table, before.table_text(table))
        else:
            document = _exchange(document, before, table, step)
    return document.text


def _exchange(document: ServerText, before: ServerText, table: Table, step: Step) -> ServerText:
    present = document.servers(table)
    is_own = step.own in present and is_own_entry(step.own, present[step.own])
    own = [step.own] if is_own and table == step.tables[0][0] else []
    back = {
        moved.name: before.piece(table, moved.name)
        for moved in step.moved
        if moved.table == table and (moved.name not in present or moved.name in own)
    }
    return document.edited(table, own, back) if own or back else document


def _bare(place: Place, was: str | None, document: ServerText) -> str | None:
    """Take out an entry of ours that somebody wrote by hand."""
    own = [each for each in find_servers(place, document) if each.is_own]
    for entry in own:
        document = document.edited(entry.table, [entry.name], {})
    return document.text if own else was


def _sorted_out(
    place: Place, text: str | None, record: Record
) -> tuple[tuple[Moved, ...], tuple[Moved, ...]]:
    """Return which servers are in the client's file again, and which are not."""
    document = parse_document(place, text or "")
    moved = [each for step in record.steps for each in step.moved]
    back = tuple(each for each in moved if each.name in document.servers(each.table))
    return back, tuple(each for each in moved if each not in back)
