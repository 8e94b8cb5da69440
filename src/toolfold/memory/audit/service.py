"""The verb of audits: find what is wrong with notes, and change what is confirmed."""

import time
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import anyio.to_thread

from toolfold.errors import BadInput
from toolfold.memory.audit.checks import FindPersonal, faults, is_stale
from toolfold.memory.consolidation.models import ConsolidationCounts
from toolfold.memory.consolidation.store import (
    ConsolidationPlan,
    ConsolidationStore,
    Merge,
    Occasion,
    SeenNote,
    StoredNote,
)
from toolfold.memory.consolidation.study import sameness_key
from toolfold.memory.inputs import MAX_TAGS, check_limit, clean_name
from toolfold.memory.models import (
    CHANGES,
    AuditFinding,
    AuditReport,
    FindingKind,
    Note,
    check_prefix,
    finding_id,
    preview,
    shown,
)
from toolfold.memory.registry import verb
from toolfold.memory.statements import Statement, read_statement, supersedes
from toolfold.memory.store import Store

if TYPE_CHECKING:
    from toolfold.memory.consolidation.associations import NoteVectors

Progress: TypeAlias = Callable[[int, int, str], None]
"""Told how much is done, of how much, and what it is."""

DEFAULT_FINDINGS: Final = 20
_MAX_APPLIED: Final = 10_000
_NOTES_AT_ONCE: Final = 500
_PINNED: Final = frozenset({"important", "pinned"})
_DAY_S: Final = 86_400.0
# A note has had its chance when it was there for so long while others were found.
_UNUSED_DAYS: Final = 90
_MAX_STATEMENTS_OF_TOPIC: Final = 50


class _Seen(NamedTuple):
    """What is held of each note: there may be a great many."""

    key: int
    hash: str
    created: float
    is_part: bool


class NoteAudit:
    """Finds what is wrong with the notes of one namespace.

    Every verb raises `BadInput` for a value that cannot be used, having changed nothing, and
    `StoreError` when the store does not answer.
    """

    def __init__(
        self,
        notes: Store,
        consolidations: ConsolidationStore,
        *,
        namespace: str,
        find_personal: FindPersonal,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._notes = notes
        self._consolidations = consolidations
        self._namespace = clean_name(namespace, "namespace")
        self._find_personal = find_personal
        self._clock = clock

    @verb("changes", "POST /memory/audit")
    async def audit(
        self,
        kinds: str | Sequence[str] = (),
        limit: int = DEFAULT_FINDINGS,
        *,
        apply: str | Sequence[str] = (),
        progress: Progress | None = None,
    ) -> AuditReport:
        """Check all notes for problems, and return each with evidence and a proposed fix.

        Kinds are `duplicate` and `near_duplicate`, `contradiction`, `stale` (past its time),
        `secret` (secrets and personal data), `injection` (instructions to the reader),
        `unused` (old, and never found by a search) and `junk`; all, if none is given.
        `limit` findings of each are listed, `counts` counts all. Notes with the tag `important` or
        `pinned` are left out.

        Nothing is changed, unless `apply` names findings by their ids: then only those are fixed.
        `undo` reverses what was merged and archived, `reinstate` what was superseded. An archived
        secret is still in the files; `purge` erases it.

        Raises:
            NotFound: A note of a finding in `apply` is not there.
        """
        wanted, limit = _check_kinds(kinds), check_limit(limit)
        if apply:
            return await self._apply(_check_ids(apply))
        tell = progress or _tell_nobody
        search = _Search(wanted, self._find_personal, now=self._clock())
        total = (await self._notes.counts(self._namespace)).notes
        last = 0
        while some := await self._some(last):
            tell(min(search.count, total), total, "reading notes")
            last = some[-1].key
            await anyio.to_thread.run_sync(search.read, some)
        search.finish()
        if wanted & {"near_duplicate", "contradiction"}:
            tell(total, total, "comparing notes")
            await self._compare(search)
        return search.report(limit)

    async def _some(self, last: int) -> list[StoredNote]:
        return await self._consolidations.notes_after(self._namespace, last, limit=_NOTES_AT_ONCE)

    async def _compare(self, search: "_Search") -> None:
        """Look at the texts of notes that are near each other, some at a time."""
        pairs = await anyio.to_thread.run_sync(search.near_pairs)
        for start in range(0, len(pairs), _NOTES_AT_ONCE):
            some = pairs[start : start + _NOTES_AT_ONCE]
            keys = {search.seen[row].key for pair in some for row in pair[:2]}
            notes = await self._notes.load(self._namespace, list(keys))
            texts = {key: note.content for key, note in notes.items() if note.until is None}
            await anyio.to_thread.run_sync(search.compare, some, texts)

    async def _apply(self, chosen: Sequence[tuple[FindingKind, tuple[str, ...]]]) -> AuditReport:
        notes = {name: await self._notes.get(self._namespace, name) for name in _names(chosen)}
        keys = await self._keys(notes.values())
        now, merges, archive = self._clock(), [], []
        superseded = 0
        for kind, names in chosen:
            change = CHANGES[kind] if len(names) < 2 or kind != "stale" else "supersede"
            if change == "merge":
                merges.append(_merge([notes[name] for name in names], keys))
            elif change == "archive":
                archive += [keys[notes[name].hash] for name in names]
            else:
                newer, older = names
                superseded += await self._notes.supersede(
                    self._namespace, older, newer, is_found=False
                )
        plan = ConsolidationPlan(
            merges=tuple(merges),
            archive=tuple(archive),
            seen={keys[note.hash]: SeenNote(note.hash, note.version) for note in notes.values()},
        )
        undo, done = None, 0
        if merges or archive:
            counts = ConsolidationCounts(looked_at=len(notes))
            occasion = Occasion(at=now, strategy="audit", days_back=None, counts=counts)
            applied = await self._consolidations.apply(self._namespace, plan, occasion)
            undo, done = applied.id, applied.counts.superseded + applied.counts.archived
        return AuditReport(len(notes), {}, (), done + superseded, undo)

    async def _keys(self, notes: Iterable[Note]) -> dict[str, int]:
        """Return the keys of notes by their hashes."""
        wanted = {note.hash for note in notes}
        found: dict[str, int] = {}
        last = 0
        while len(found) < len(wanted) and (some := await self._some(last)):
            last = some[-1].key
            found |= {note.hash: note.key for note in some if note.hash in wanted}
        if missing := wanted - found.keys():
            raise BadInput(f"The note {shown(min(missing))} is not found any more. Audit again.")
        return found


class _Search:
    """Holds what is known of all notes while they are looked through."""

    def __init__(
        self, wanted: frozenset[FindingKind], find_personal: FindPersonal, *, now: float
    ) -> None:
        self._wanted = wanted
        self._find_personal = find_personal
        self._now = now
        self.count = 0
        self.seen: list[_Seen] = []
        self._vectors: list[bytes | None] = []
        self._same: dict[bytes, array[int]] = {}
        self._said: defaultdict[frozenset[str], list[tuple[int, Statement]]] = defaultdict(list)
        self._waiting: list[int] = []
        self._is_used = False
        self._found: dict[FindingKind, dict[str, AuditFinding]] = {kind: {} for kind in CHANGES}
        self._paired: set[frozenset[int]] = set()

    def read(self, notes: Sequence[StoredNote]) -> None:
        """Look at some notes by themselves, and keep what is needed to compare them."""
        for note in notes:
            self.count += 1
            if not any(tag.casefold() in _PINNED for tag in note.tags):
                self._read(note)

    def _read(self, note: StoredNote) -> None:
        row = len(self.seen)
        is_part = note.thread is not None
        self.seen.append(_Seen(note.key, note.hash, note.created, is_part))
        self._vectors.append(note.vector)
        self._is_used = self._is_used or note.last_used is not None
        if note.last_used is None and self._now - note.updated > _UNUSED_DAYS * _DAY_S:
            self._waiting.append(row)
        self._check(row, note, is_part=is_part)
        if not is_part:
            self._same.setdefault(sameness_key(note.content), array("q")).append(row)
        if (said := read_statement(note.content)) is not None:
            self._said[said.topic].append((row, said))

    def _check(self, row: int, note: StoredNote, *, is_part: bool) -> None:
        found = faults(
            note.content,
            find_personal=self._find_personal if "secret" in self._wanted else _find_nothing,
            is_part=is_part,
            is_document=note.type == "document",
        )
        for kind, evidence in found:
            self._add(kind, [row], evidence)
        written = max(note.created, 0.0)
        if not is_part and (why := is_stale(note.content, written=written, now=self._now)):
            self._add("stale", [row], why)

    def finish(self) -> None:
        """Compare what all notes together are needed for."""
        for rows in self._same.values():
            if len(rows) > 1:
                newest = sorted(rows, key=lambda row: -self.seen[row].created)
                self._add("duplicate", newest, "say the same in the same words")
                self._paired |= {frozenset((newest[0], row)) for row in newest[1:]}
        for said in self._said.values():
            self._contradictions(said[-_MAX_STATEMENTS_OF_TOPIC:])
        if self._is_used:
            for row in self._waiting:
                self._add("unused", [row], f"not found by any search in {_UNUSED_DAYS} days")

    def _contradictions(self, said: Sequence[tuple[int, Statement]]) -> None:
        said = sorted(said, key=lambda each: self.seen[each[0]].created)
        for place, (row, old) in enumerate(said):
            for other, new in said[place + 1 :]:
                if supersedes(new, old):
                    kind: FindingKind = "stale" if new.is_update else "contradiction"
                    self._add(kind, [other, row], f"{_value(old)}, and later {_value(new)}")
                    self._paired.add(frozenset((row, other)))
                    break

    def near_pairs(self) -> list[tuple[int, int, float]]:
        """Return which rows are near enough to be compared by their texts."""
        from toolfold.memory.audit.pairs import near_pairs
        from toolfold.memory.consolidation.associations import read_vectors

        vectors: NoteVectors = read_vectors(self._vectors)
        self._vectors.clear()
        found = near_pairs(vectors, tick=_nothing)
        return [
            (pair.left, pair.right, pair.nearness)
            for pair in found
            if not (self.seen[pair.left].is_part or self.seen[pair.right].is_part)
            and frozenset(pair[:2]) not in self._paired
        ]

    def compare(self, pairs: Sequence[tuple[int, int, float]], texts: Mapping[int, str]) -> None:
        """Look at the texts of pairs that are near each other."""
        from toolfold.memory.audit.pairs import contradicts, says_the_same

        for left, right, nearness in pairs:
            one, other = (texts.get(self.seen[row].key) for row in (left, right))
            if one is None or other is None:
                continue
            newest = sorted((left, right), key=lambda row: -self.seen[row].created)
            if says_the_same(one, other, nearness):
                evidence = f"say the same in other words: {preview(other)[:60]}"
                self._add("near_duplicate", newest, evidence)
            elif why := contradicts(one, other, nearness):
                self._add("contradiction", newest, f"{why}: {preview(other)[:60]}")

    def _add(self, kind: FindingKind, rows: Sequence[int], evidence: str) -> None:
        if kind not in self._wanted:
            return
        hashes = tuple(shown(self.seen[row].hash) for row in rows)
        name = finding_id(kind, hashes)
        change = "supersede" if kind == "stale" and len(rows) > 1 else CHANGES[kind]
        self._found[kind][name] = AuditFinding(name, kind, hashes, evidence, change)

    def report(self, limit: int) -> AuditReport:
        """Return what was found."""
        counts: dict[str, int] = {kind: len(found) for kind, found in self._found.items()}
        counts = {kind: count for kind, count in counts.items() if kind in self._wanted}
        findings = [
            finding for found in self._found.values() for finding in list(found.values())[:limit]
        ]
        return AuditReport(self.count, counts, tuple(findings))


def _merge(notes: Sequence[Note], keys: Mapping[str, int]) -> Merge:
    best, *others = notes
    tags = tuple(dict.fromkeys(tag for note in notes for tag in note.tags))[:MAX_TAGS]
    return Merge(keys[best.hash], tuple(keys[note.hash] for note in others), tags)


def _value(said: Statement) -> str:
    return repr(" ".join(said.value))


def _names(chosen: Iterable[tuple[FindingKind, tuple[str, ...]]]) -> list[str]:
    return list(dict.fromkeys(name for _, names in chosen for name in names))


def _check_kinds(kinds: str | Sequence[str]) -> frozenset[FindingKind]:
    given = [part.strip() for part in kinds.split(",")] if isinstance(kinds, str) else kinds
    known: dict[str, FindingKind] = {kind: kind for kind in CHANGES}
    for each in given:
        if each and each not in known:
            raise BadInput(
                f"{str(each)[:60]!r} is nothing that an audit finds. {', '.join(known)}."
            )
    return frozenset(known[each] for each in given if each) or frozenset(CHANGES)


def _check_ids(ids: str | Sequence[str]) -> list[tuple[FindingKind, tuple[str, ...]]]:
    given = ids.replace(",", " ").split() if isinstance(ids, str) else list(ids)
    if len(given) > _MAX_APPLIED:
        raise BadInput(
            f"{len(given):,} changes at once are too many: {_MAX_APPLIED:,} is the limit."
        )
    counts = Counter(name for each in given for name in str(each).split(":")[1:])
    chosen = []
    for each in given:
        kind, *names = str(each).split(":")
        [checked] = _check_kinds([kind]) if kind else [None]
        if checked is None or not names or (CHANGES[checked] == "merge" and len(names) < 2):
            raise BadInput(f"{str(each)[:60]!r} is no finding. Give ids as `audit` returns them.")
        if any(counts[name] > 1 for name in names):
            raise BadInput(f"{names[0]} is in several of these findings. Apply them one by one.")
        chosen.append((checked, tuple(check_prefix(name) for name in names)))
    return chosen


def _find_nothing(_text: str) -> Iterable[tuple[str, int, int]]:
    return ()


def _tell_nobody(_done: int, _total: int, _what: str) -> None:
    pass


def _nothing() -> None:
    pass
