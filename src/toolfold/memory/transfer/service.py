"""Take memory out into a file, and take it in from one, a knowledge graph too."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import anyio
import anyio.to_thread

from toolfold.errors import BadInput
from toolfold.memory.graph import inputs
from toolfold.memory.graph.inputs import MAX_CALL_BYTES, MAX_LINES
from toolfold.memory.graph.models import Fault, Subgraph
from toolfold.memory.graph.service import Graph
from toolfold.memory.inputs import clean_name
from toolfold.memory.note_vectors import NoteVectorizer
from toolfold.memory.registry import verb
from toolfold.memory.transfer.items import (
    GraphLine,
    Item,
    NewFile,
    measure,
    read_items,
    take_some,
    tell_source,
)
from toolfold.memory.transfer.models import FORMATS, Archive, Exported, Format, Imported, Outcomes
from toolfold.memory.transfer.records import (
    ArchiveRecord,
    first_line,
    last_line,
    what_is,
    write_record,
)


class NumberedLine(NamedTuple):
    """A line and where it stands in its file."""

    number: int
    text: str


async def take_graph(
    graph: Graph, lines: Sequence[NumberedLine], outcomes: Outcomes, *, dry_run: bool
) -> None:
    """Have the graph take over what it lacks, or only count that; what came of it is in `outcomes`.

    Raises:
        StoreError: The store does not take it.
    """
    texts = [line.text for line in lines]
    given, faults = inputs.read(texts)
    if dry_run:
        known, _ = inputs.read((await graph.export_jsonl()).split("\n"))
        new = lacking(known, given)
    else:
        report = await graph.import_jsonl(texts)
        new = MissingCounts(report.entities, report.observations, report.relations)
    outcomes.count("entities", added=new.entities, of=len(given.entities))
    outcomes.count("observations", added=new.observations, of=new.observations)
    outcomes.count("relations", added=new.relations, of=len(given.relations))
    for fault in faults:
        outcomes.add_fault(Fault(lines[fault.line - 1].number, fault.reason))


class MissingCounts(NamedTuple):
    """How much of a graph is not in another."""

    entities: int
    observations: int
    """Of entities that are."""

    relations: int


def lacking(known: Subgraph, given: Subgraph) -> MissingCounts:
    """Return what `GraphStore.merge` would keep of a graph."""
    observations: dict[str, set[str]] = {}
    for entity in known.entities:
        observations.setdefault(entity.name, set()).update(entity.observations)
    new = 0
    for entity in given.entities:
        if entity.name in observations:
            added = set(entity.observations) - observations[entity.name]
            observations[entity.name] |= added
            new += len(added)
    names = {entity.name for entity in known.entities}
    relations = set(known.relations)
    return MissingCounts(
        sum(entity.name not in names for entity in given.entities),
        new,
        sum(relation not in relations for relation in given.relations),
    )


Progress: TypeAlias = Callable[[int, int, str], None]
"""Told how much is done, of how much, and of what."""

_AT_ONCE: Final = 500


class Transfer:
    """Moves the memory of one namespace: notes, events, documents, and the knowledge graph.

    Both verbs raise `BadInput` for a value that cannot be used, having changed nothing, and
    `StoreError` when the store does not answer or a file cannot be written.
    """

    def __init__(
        self,
        archive: Archive,
        graph: Graph,
        meaning: NoteVectorizer,
        *,
        namespace: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._archive = archive
        self._graph = graph
        self._meaning = meaning
        self._namespace = clean_name(namespace, "namespace")
        self._clock = clock

    @verb("reads", is_for_users=True, is_command=False, file="path")
    async def export_file(self, path: str, format: Format = "toolfold") -> Exported:
        """Write all that is remembered into a file, as lines of JSON.

        "toolfold" is everything, earlier versions and deleted notes included, and the same memory
        always makes the same bytes. "server-memory" is the knowledge graph as that program keeps
        it. A file that is there is replaced when the new one is whole.
        """
        if format not in FORMATS:
            raise BadInput(f"{format!r} is no format to export. There are: {', '.join(FORMATS)}.")
        file = await anyio.to_thread.run_sync(NewFile, _whole_path(path))
        try:
            counts = await self._write(file, format)
            await anyio.to_thread.run_sync(file.finish)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(file.discard)
        return Exported(path, format, dict(counts), file.size)

    @verb("adds", is_for_users=True, is_command=False, file="path")
    async def import_file(
        self, path: str, dry_run: bool = False, *, progress: Progress | None = None
    ) -> Imported:
        """Remember what is in a file: an export of toolfold, or the memory of another program.

        Which one it is is told by looking: the JSON lines of server-memory, a SQLite database of
        mcp-memory-service, the zip that ChatGPT or Claude exports, or a transcript of Claude Code.
        What is there already stays as it is, so importing twice is importing once. A line that
        cannot be used is named, and the others are taken. With `dry_run` nothing is changed, and
        the result says what would be.

        Raises:
            NotFound: There is no such file.
        """
        place = _whole_path(path)
        source = await anyio.to_thread.run_sync(tell_source, place)
        total = await anyio.to_thread.run_sync(measure, place, source)
        taking = _Taking(self._archive, self._graph, self._namespace, is_rehearsal=bool(dry_run))
        items = read_items(place, source, now=self._clock())
        try:
            while batch := await anyio.to_thread.run_sync(take_some, items, _AT_ONCE):
                self._meaning.want(await taking.take(batch, now=self._clock()))
                if progress is not None:
                    progress(batch[-1].done, total, source)
            await taking.finish()
        except OSError as error:
            raise BadInput(f"{path} cannot be read: {error.strerror or error}.") from error
        finally:
            items.close()
        return taking.outcomes.result(source, dry_run=bool(dry_run))

    async def move_in(self, formerly: str) -> None:
        """Take over what is kept in another namespace, if anything is."""
        keys = await self._archive.move(formerly, self._namespace, now=self._clock())
        self._meaning.want(keys)

    async def _write(self, file: NewFile, format: Format) -> "Counter[str]":
        counts: Counter[str] = Counter()
        if format == "toolfold":
            await self._write_records(file, counts)
        text = await self._graph.export_jsonl()

        def finish() -> None:
            for line in filter(None, text.split("\n")):
                file.write(line)
                counts["entities" if line.startswith('{"type":"entity"') else "relations"] += 1
            if format == "toolfold":
                file.write(last_line(file.lines - 1))

        await anyio.to_thread.run_sync(finish)
        return counts

    async def _write_records(self, file: NewFile, counts: "Counter[str]") -> None:
        def take(record: ArchiveRecord) -> None:
            file.write(write_record(record))
            counts[what_is(record)] += 1

        await anyio.to_thread.run_sync(file.write, first_line())
        await self._archive.export(self._namespace, take)


class _Taking:
    """Takes what stands in a file, some at a time."""

    def __init__(
        self, archive: Archive, graph: Graph, namespace: str, *, is_rehearsal: bool
    ) -> None:
        self.outcomes = Outcomes()
        self._archive = archive
        self._graph = graph
        self._namespace = namespace
        self._is_rehearsal = is_rehearsal
        self._graph_lines: list[NumberedLine] = []
        self._graph_chars = 0

    async def take(self, items: list[Item], *, now: float) -> list[int]:
        """Keep some, and return the keys of notes that need a vector by now."""
        records: list[tuple[int, ArchiveRecord]] = []
        for item in items:
            if isinstance(item.found, GraphLine):
                await self._take_graph_line(NumberedLine(item.line, item.found.text))
            elif isinstance(item.found, Fault):
                self.outcomes.add_fault(item.found)
            else:
                records.append((item.line, item.found))
        return await self._merge(records, now) if records else []

    async def finish(self) -> None:
        """Keep what is left."""
        lines, self._graph_lines, self._graph_chars = self._graph_lines, [], 0
        if lines:
            await take_graph(self._graph, lines, self.outcomes, dry_run=self._is_rehearsal)

    async def _take_graph_line(self, line: NumberedLine) -> None:
        # As much at a time as the graph takes: of two entities of one name, a later part would
        # find the first, and add to it.
        is_much = self._graph_chars + len(line.text) > MAX_CALL_BYTES
        if is_much or len(self._graph_lines) == MAX_LINES:
            await self.finish()
        self._graph_lines.append(line)
        self._graph_chars += len(line.text)

    async def _merge(self, records: list[tuple[int, ArchiveRecord]], now: float) -> list[int]:
        taken = await self._archive.merge(
            self._namespace,
            [record for _, record in records],
            now=now,
            dry_run=self._is_rehearsal,
        )
        for (line, record), each in zip(records, taken, strict=True):
            if each.outcome is None:
                self.outcomes.add_fault(Fault(line, each.reason))
            else:
                self.outcomes.add(what_is(record), each.outcome)
        keys = [each.key for each in taken if each.key is not None]
        return [] if self._is_rehearsal else keys


def _whole_path(path: str) -> Path:
    if not isinstance(path, str) or not path.strip() or "\0" in path:
        raise BadInput("`path` is the path of a file, as text.")
    found = Path(path).expanduser()
    if not found.is_absolute():
        raise BadInput(f"{path!r} is a relative path. Give the whole path.")
    return found
