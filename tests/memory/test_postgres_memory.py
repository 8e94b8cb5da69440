"""Memory in PostgreSQL as a whole: many processes, many notes, and moving between databases."""

import shutil
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2 as httpx
import numpy as np
import pytest
from fakes import FakeEmbedder
from http_daemon import serve_command, serving
from postgres_server import database_url
from stores import draft, embed_all, found, open_postgres, open_sqlite
from support import MakeConfig, write_config

from toolfold.app import migrate_stores, running_memories
from toolfold.config.config import Config
from toolfold.errors import ConfigError, NotFound, StoreError
from toolfold.execution.trust.approvals import approvals_of
from toolfold.memory.memories import RequestContext
from toolfold.memory.sql.connection import SqlConnection
from toolfold.memory.sql.copy import CopiedTable
from toolfold.memory.sql.writer import NoteWriter
from toolfold.memory.store import EVERYTHING, Filter, Query
from toolfold.privacy.store import vaults_of
from toolfold.skills.models import SkillTexts
from toolfold.skills.store import skill_store_of
from toolfold.storage.secrets import read_key

pytest.importorskip("psycopg_pool", reason="toolfold[postgres] is not installed")

from toolfold.memory.postgres import store

ONE = RequestContext("one")


@pytest.fixture
def on_postgres(make_config: MakeConfig, tmp_path: Path) -> Config:
    return make_config({}, database_url=database_url(tmp_path))


async def test_two_processes_see_each_others_notes_at_once(on_postgres: Config) -> None:
    embedder = FakeEmbedder()
    async with (
        running_memories(on_postgres, embedder) as here,
        running_memories(on_postgres, embedder) as there,
    ):
        ours, theirs = await here.services(ONE), await there.services(ONE)
        for number in range(10):
            name = await ours.notes.store(f"The harbour master keeps {number} boats.")
            assert (await theirs.notes.get(name)).content.endswith(f"{number} boats.")
            seen = await theirs.notes.search(f"harbour {number} boats", limit=50)
            assert name in [each.hash for each in seen.memories]
            await theirs.notes.delete(name)
            with pytest.raises(NotFound):
                await ours.notes.get(name)
        await theirs.graph.create_entity("Ada", "person", ["sails"])
        assert [each["name"] for each in (await ours.graph.read_graph())["entities"]] == ["Ada"]
        await ours.events.record_event("build", "green")
        assert (await theirs.events.recall_events()).total == 1


async def test_many_who_store_the_same_at_once_store_it_once(on_postgres: Config) -> None:
    hashes: list[str] = []
    async with (
        running_memories(on_postgres, FakeEmbedder()) as here,
        running_memories(on_postgres, FakeEmbedder()) as there,
    ):

        async def store(memories: Any, number: int) -> None:
            services = await memories.services(ONE)
            hashes.append(await services.notes.store(f"note {number % 5}", tags=[f"t{number}"]))

        async with anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon(store, (here, there)[number % 2], number)
        services = await here.services(ONE)
        listed = await services.notes.list()
        assert listed.total == 5
        tags = [tag for each in listed.memories for tag in each.tags]
        assert sorted(tags) == sorted(f"t{number}" for number in range(40))
    assert len(set(hashes)) == 5


async def test_who_writes_in_one_namespace_does_not_wait_for_another(tmp_path: Path) -> None:
    is_in, may_go = threading.Event(), threading.Event()

    def stay(connection: SqlConnection) -> None:
        NoteWriter(connection, "one", now=1.0).add(draft("slow"))
        is_in.set()
        may_go.wait(60)

    async with open_postgres(tmp_path) as backend, anyio.create_task_group() as tasks:
        tasks.start_soon(backend.database.write, stay, "one")
        await anyio.to_thread.run_sync(is_in.wait, 60)
        with anyio.fail_after(30):
            await backend.store.add("two", [draft("quick")], now=1.0)
        assert await backend.store.keys("one", EVERYTHING) == []
        may_go.set()


def test_two_servers_share_what_is_remembered(tmp_path: Path) -> None:
    url = database_url(tmp_path)
    config = write_config(tmp_path / "mcp.json", {})
    command = serve_command(config, "--set", f"database_url={url}")
    with (
        serving(command, home=tmp_path / "a") as first,
        serving(command, home=tmp_path / "b") as second,
    ):
        made = httpx.post(
            f"{first.root}/memory/notes", json={"content": "The bridge opens at noon."}, timeout=60
        )
        assert made.is_success, made.text
        seen = httpx.get(
            f"{second.root}/memory/search",
            params={"query": "When does the bridge open?"},
            timeout=60,
        )
        assert "bridge opens at noon" in seen.text
        assert not (tmp_path / "a" / "data" / "memory.db").exists()


async def test_candidates_are_ranked_as_all_notes_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With few candidates of many notes, the best are those that SQLite's whole index finds."""
    monkeypatch.setattr(store, "FEW", 0)
    random = np.random.default_rng(7)
    words = [f"word{number}" for number in range(300)]
    drafts = [
        draft(
            " ".join(random.choice(words, size=12)),
            thread=f"talk {number // 20}",
            position=number,
            tags=("odd",) if number % 2 else (),
        )
        for number in range(1_000)
    ]
    embedder = FakeEmbedder()
    async with open_sqlite(tmp_path) as sqlite, open_postgres(tmp_path) as postgres:
        for backend in (sqlite, postgres):
            await backend.store.add("one", drafts, now=1000.0)
            await embed_all(backend.store, embedder)
            await backend.store.warm("one")
        shared, asked = 0, 0
        for text in (" ".join(random.choice(words, size=4)) for _ in range(12)):
            for wanted in (EVERYTHING, Filter(tags=("odd",))):
                query = Query(
                    text=text, vector=lambda text=text: embedder.embed([text])[0], wanted=wanted
                )
                whole = await sqlite.store.search("one", query, depth=100)
                some = await postgres.store.search("one", query, depth=100)
                best, seen = dict(whole.lists["words"][:20]), dict(some.lists["words"])
                assert all(seen[key] == pytest.approx(best[key], rel=1e-3) for key in best)
                for name in ("words_nearby", "meaning_nearby"):
                    best, seen = dict(whole.lists[name][:20]), dict(some.lists[name])
                    shared += sum(
                        seen.get(key) == pytest.approx(best[key], rel=1e-3) for key in best
                    )
                    asked += len(best)
        assert shared / asked > 0.97


async def test_a_word_of_any_length_is_taken_and_found(tmp_path: Path) -> None:
    async with open_postgres(tmp_path) as backend:
        long = "x" * 9_000
        await backend.store.add("one", [draft(f"key {long}"), draft("other")], now=1.0)
        assert await found(backend.store, "one", long) == [f"key {long}"]


async def fill(config: Config) -> None:
    async with running_memories(config, FakeEmbedder()) as memories:
        services = await memories.services(ONE)
        notes = services.notes
        first = await notes.store("The cat sleeps.", tags=["pets", "ö"], metadata={"a": [1, None]})
        await notes.update(first, content="The cat sleeps all day.")
        gone = await notes.store("deleted")
        await notes.delete(gone)
        await notes.purge(await notes.store("purged, and last of all numbers"))
        for position in range(3):
            await notes.store(f"part {position}", thread="talk", position=position)
        await notes.get(await notes.store("used"))
        await services.events.record_event("build", "red", metadata={"x": 1.5})
        await services.graph.create_entity("Ada\0\ud83d", "person", ["sails", "writes"])
        await services.graph.create_entity("Ben", "person", [])
        await services.graph.add_observations([{"entityName": "Ben", "contents": ["rows"]}])
        await services.graph.create_relations(
            [{"from": "Ben", "to": "Ada\0\ud83d", "relationType": "knows"}]
        )
        await services.consolidation.consolidate()
        other = await memories.services(RequestContext("two"))
        await other.notes.store("The cat sleeps.")
        await notes.until_ready()


async def asked(config: Config) -> list[Any]:
    async with running_memories(config, FakeEmbedder()) as memories:
        services = await memories.services(ONE)
        await services.notes.until_ready()
        await services.notes.store("new since")
        return [
            [each.preview for each in (await services.notes.search("cat part", limit=20)).memories],
            await services.graph.read_graph(),
            (await services.graph.search_graph("rows")).total,
            [each.id for each in (await services.events.recall_events()).events],
        ]


def hashes(copied: list[CopiedTable]) -> dict[str, tuple[int, str]]:
    return {each.name: (each.rows, each.sha256) for each in copied}


def tell(_table: str, _rows: int) -> None:
    pass


async def test_memory_survives_the_way_to_postgresql_and_back(
    make_config: MakeConfig, tmp_path: Path
) -> None:
    url = database_url(tmp_path)
    origin = make_config({})
    await fill(origin)
    approvals_of(origin).allow_always("here", "crm.look", "{}")
    approvals_of(origin).definitions.pin("here", "crm.look", "{}")
    skill_store_of(origin).note("/root", "x", SkillTexts("text", "def x(): ..."), how="saved")
    skill_store_of(origin).count("/root", "x", error=None)
    with closing(vaults_of(origin)) as vaults:
        vaults.vault("here").conceal("ada@example.org")
    there = await migrate_stores(origin, "", url, tell)
    assert {each.name for each in there if each.rows} >= {
        *("standing", "definitions", "skill_versions", "skill_uses", "pages", "scopes", "keys"),
        *("notes", "versions", "tags", "threads", "events", "graph_parts", "graph_relations"),
        *("uses", "consolidations", "points"),
    }
    assert hashes(await migrate_stores(origin, "", url, tell)) == hashes(there), "once more"

    data = replace(origin.directories, data=tmp_path / "elsewhere")
    back = replace(origin, directories=data)
    with pytest.raises(StoreError, match=r"approvals\.key is not the key"):
        await migrate_stores(back, url, "", tell)
    for key in ("approvals.key", "vaults.key"):
        shutil.copy(origin.directories.data / key, data.data / key)
    read_key.cache_clear()
    again = await migrate_stores(back, url, "", tell)
    assert hashes(again) == hashes(there)
    assert hashes(await migrate_stores(back, url, "", tell)) == hashes(there), "once more"
    assert approvals_of(back).always_allowed("here") == [("here", "crm.look")]
    assert [each.number for each in skill_store_of(back).versions("/root", "x")] == [1]
    with closing(vaults_of(back)) as vaults:
        assert vaults.vault("here").reveal("[EMAIL_1]").value == "ada@example.org"
    expected = await asked(origin)
    assert expected[2] == 1
    assert await asked(back) == expected
    assert await asked(make_config({}, database_url=url)) == expected


async def test_what_only_the_target_has_is_not_overwritten(
    make_config: MakeConfig, tmp_path: Path
) -> None:
    url = database_url(tmp_path)
    origin = make_config({})
    await fill(origin)
    async with running_memories(make_config({}, database_url=url), FakeEmbedder()) as memories:
        services = await memories.services(ONE)
        await services.notes.store("only here")
    with pytest.raises(StoreError, match="1 note that the source has not"):
        await migrate_stores(origin, "", url, tell)
    async with running_memories(make_config({}, database_url=url), FakeEmbedder()) as memories:
        assert (await (await memories.services(ONE)).notes.list()).total == 1


def test_a_project_cannot_name_a_database_and_no_message_repeats_one(
    make_config: MakeConfig, home: Path, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".toolfold").mkdir()
    (tmp_path / ".toolfold" / "config.toml").write_text(
        'database_url = "postgresql://eve:evil-pw@evil/x"\n'
    )
    config = make_config({}, toml='database_url = "postgresql://me:my-pw@db/notes"\n')
    assert config.settings.database_url == "postgresql://me:my-pw@db/notes"
    said = f"{config.settings!r} {[str(fault) for fault in config.faults]}"
    assert "my-pw" not in said
    assert "evil-pw" not in said
    with pytest.raises(ConfigError) as caught:
        make_config({}, toml='database_url = "mysql://me:my-pw@db/notes"\n')
    assert "my-pw" not in str(caught.value)
