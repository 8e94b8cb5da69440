"""Any store against a simple model of it, under random operations."""

import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio.from_thread
import pytest
from fakes import FakeEmbedder
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from stores import OpenStore, draft, embed_all, found

from toolfold.errors import BadInput, NotFound
from toolfold.memory.store import Filter, NoteChange

WORDS = ["apple", "bridge", "cloud", "dragon", "ember"]
NAMESPACES = st.sampled_from(["one", "two"])
CONTENTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
TAGS = st.sampled_from([(), ("x",), ("y",), ("x", "y"), ("y", "x")])
PLACES = st.one_of(
    st.just({}),
    st.builds(lambda at: {"thread": "talk", "position": at}, st.integers(0, 3)),
)
TYPES = st.sampled_from(["note", "fact"])


@dataclass
class Kept:
    """A note as the model has it."""

    content: str
    tags: tuple[str, ...]
    type: str
    created: float
    place: dict[str, Any] = field(default_factory=dict)
    is_deleted: bool = False
    versions: int = 1

    @property
    def name(self) -> str:
        return draft(self.content, **self.place).hash


class StoreMachine(RuleBasedStateMachine):
    """Drives a store and a list of notes with the same operations."""

    open_store: OpenStore

    @initialize()
    def start(self) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.stack = ExitStack()
        self.portal = self.stack.enter_context(anyio.from_thread.start_blocking_portal())
        self.call = self.portal.call
        self.embedder = FakeEmbedder()
        self.kept: dict[str, list[Kept]] = {"one": [], "two": []}
        self.now = 0.0
        self.opened = self.stack.enter_context(ExitStack())
        self.open()

    def open(self) -> None:
        opening = self.portal.wrap_async_context_manager(self.open_store(self.directory))
        self.store = self.opened.enter_context(opening)
        self.call(self.store.adopt, self.embedder.name, self.embedder.dimensions)

    def teardown(self) -> None:
        self.stack.close()
        shutil.rmtree(self.directory)

    def find(self, namespace: str, name: str, *, deleted: bool | None = False) -> Kept | None:
        notes = [note for note in self.kept[namespace] if note.name == name]
        return next((n for n in notes if deleted is None or n.is_deleted == deleted), None)

    @rule(ns=NAMESPACES, content=CONTENTS, tags=TAGS, kind=TYPES, place=PLACES)
    def add(self, ns: str, content: str, tags: tuple[str, ...], kind: str, place: Any) -> None:
        self.now += 1
        written = draft(content, tags=tags, type=kind, created=self.now, **place)
        self.call(lambda: self.store.add(ns, [written], now=self.now))
        note = self.find(ns, written.hash, deleted=None)
        if note is None:
            self.kept[ns].append(Kept(content, tags, kind, self.now, place))
        elif note.is_deleted:
            note.tags, note.type, note.created, note.is_deleted = tags, kind, self.now, False
            note.versions += 1
        elif not set(tags) <= set(note.tags):
            note.tags = tuple(dict.fromkeys((*note.tags, *tags)))
            note.versions += 1

    @rule(ns=NAMESPACES, old=CONTENTS, place=PLACES, content=CONTENTS, tags=TAGS)
    def update(self, ns: str, old: str, place: Any, content: str, tags: tuple[str, ...]) -> None:
        note = self.find(ns, draft(old, **place).hash)
        if note is None:
            return
        after = replace(note, content=content, tags=tags)
        change = NoteChange(content=content, tags=tags)
        other = self.find(ns, after.name, deleted=None)
        if other is not None and other is not note:
            with pytest.raises(BadInput):
                self.call(lambda: self.store.update(ns, note.name, change, now=self.now))
            return
        self.call(lambda: self.store.update(ns, note.name, change, now=self.now))
        note.versions += (note.content, note.tags) != (content, tags)
        note.content, note.tags = content, tags

    @rule(ns=NAMESPACES, content=CONTENTS, place=PLACES)
    def delete(self, ns: str, content: str, place: Any) -> None:
        note = self.find(ns, draft(content, **place).hash)
        if note is not None:
            assert self.call(lambda: self.store.delete(ns, [note.name], now=self.now)) == 1
            note.is_deleted = True

    @rule(ns=NAMESPACES, tags=TAGS.filter(len))
    def delete_tagged(self, ns: str, tags: tuple[str, ...]) -> None:
        wanted = Filter(tags=tags, tag_match="all")
        notes = [n for n in self.live(ns) if set(tags) <= set(n.tags)]
        assert self.call(lambda: self.store.delete_matching(ns, wanted, now=1.0)) == len(notes)
        for note in notes:
            note.is_deleted = True

    @rule(ns=NAMESPACES, content=CONTENTS, place=PLACES)
    def restore(self, ns: str, content: str, place: Any) -> None:
        note = self.find(ns, draft(content, **place).hash, deleted=True)
        if note is not None:
            assert self.call(lambda: self.store.restore(ns, [note.name], now=self.now)) == 1
            note.is_deleted = False

    @rule(ns=NAMESPACES, content=CONTENTS, place=PLACES)
    def purge(self, ns: str, content: str, place: Any) -> None:
        note = self.find(ns, draft(content, **place).hash, deleted=None)
        if note is not None:
            assert self.call(lambda: self.store.purge(ns, [note.name], now=self.now)) == 1
            self.kept[ns].remove(note)

    @rule()
    def embed(self) -> None:
        self.call(embed_all, self.store, self.embedder)
        assert self.call(lambda: self.store.unembedded()) == []

    @rule()
    def open_again(self) -> None:
        self.opened.close()
        self.open()

    @rule(ns=NAMESPACES, word=st.sampled_from(WORDS), tags=TAGS, by_meaning=st.booleans())
    def search(self, ns: str, word: str, tags: tuple[str, ...], by_meaning: bool) -> None:
        wanted = Filter(tags=tags)
        embedder = self.embedder if by_meaning else None
        contents = self.call(lambda: found(self.store, ns, word, wanted, embedder=embedder))
        passing = [n for n in self.live(ns) if not tags or set(tags) & set(n.tags)]
        with_word = sorted(n.content for n in passing if word in n.content.split())
        assert sorted(c for c in contents if word in c.split()) == with_word
        assert set(contents) <= {n.content for n in passing}

    def live(self, ns: str) -> list[Kept]:
        return [note for note in self.kept[ns] if not note.is_deleted]

    @invariant()
    def the_store_has_what_the_model_has(self) -> None:
        for ns in self.kept:
            listing = self.call(lambda ns=ns: self.store.newest(ns, Filter(), limit=1000))
            expected = sorted(self.live(ns), key=lambda note: -note.created)
            shown = [(n.hash, n.content, n.tags, n.type, n.version) for n in listing.notes]
            assert shown == [(n.name, n.content, n.tags, n.type, n.versions) for n in expected]
            assert listing.total == len(expected)
            assert self.call(lambda ns=ns: self.store.counts(ns)).notes == len(expected)

    @rule(ns=NAMESPACES, content=CONTENTS, place=PLACES)
    def history(self, ns: str, content: str, place: Any) -> None:
        name = draft(content, **place).hash
        note = self.find(ns, name, deleted=None)
        if note is not None:
            versions = self.call(lambda: self.store.history(ns, name))
            assert [each.version for each in versions] == list(range(1, note.versions + 1))
            assert versions[-1].content == note.content
        else:
            try:
                versions = self.call(lambda: self.store.history(ns, name))
            except NotFound:
                return
            assert name in {each.hash for each in versions[:-1]}, "an old name of another note"


def test_a_store_does_what_a_simple_model_of_it_does(open_store: OpenStore) -> None:
    StoreMachine.open_store = staticmethod(open_store)
    run_state_machine_as_test(
        StoreMachine,
        settings=settings(
            max_examples=25,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
