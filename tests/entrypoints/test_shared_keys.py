"""API keys in PostgreSQL: one list for all replicas."""

import time
from pathlib import Path

import httpx2 as httpx
import pytest
from http_daemon import serve_command, serving
from postgres_server import database_url
from support import MakeConfig, write_config

from toolfold.entrypoints.http.keys import FRESH_S, KeyFile, Keys, KeyTable, copy_keys
from toolfold.errors import NotFound, StoreError

pytest.importorskip("psycopg_pool", reason="toolfold[postgres] is not installed")


def test_a_key_is_known_to_all_who_have_the_same_database(
    make_config: MakeConfig, tmp_path: Path
) -> None:
    config = make_config({}, database_url=database_url(tmp_path))
    here, there = Keys.of(config), Keys.of(config)
    key, secret = here.create("ada", "team", now=1.0)
    assert there.find(secret) == here.find(secret) == key
    assert not (config.directories.data / "keys.json").exists()
    here.revoke("ada", now=2.0)
    assert here.find(secret) is None
    time.sleep(FRESH_S)
    assert there.find(secret) is None
    with pytest.raises(NotFound):
        there.get(key.id)


def test_replicas_let_in_and_turn_away_the_same_keys(
    make_config: MakeConfig, tmp_path: Path
) -> None:
    url = database_url(tmp_path)
    keys = Keys.of(make_config({}, database_url=url))
    _, secret = keys.create("ada", "team", now=1.0)
    config = write_config(tmp_path / "mcp.json", {})
    command = serve_command(config, "--set", f"database_url={url}", "--set", "require_keys=true")
    shown = {"x-api-key": secret}
    with (
        serving(command, home=tmp_path / "a") as first,
        serving(command, home=tmp_path / "b") as second,
    ):
        roots = (first.root, second.root)
        notes = [f"{root}/memory/notes" for root in roots]
        assert [httpx.get(each, timeout=60).status_code for each in notes] == [401, 401]
        assert [httpx.get(each, headers=shown, timeout=60).status_code for each in notes] == [
            *(200, 200),
        ]
        keys.revoke("ada", now=2.0)
        time.sleep(FRESH_S)
        assert [httpx.get(each, headers=shown, timeout=60).status_code for each in notes] == [
            *(401, 401),
        ]


def test_without_its_database_nobody_is_known(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        Keys(KeyTable("postgresql://ada:pw@127.0.0.1:1/notes")).find("tf_x")


def test_keys_are_copied_and_stay_revoked(tmp_path: Path) -> None:
    file, table = KeyFile(tmp_path / "keys.json"), KeyTable(database_url(tmp_path))
    ours = Keys(file)
    _, first = ours.create("ada", "team", now=1.0)
    _, second = ours.create("ben", "team", now=2.0)
    assert copy_keys(file, table) == 2
    Keys(table).revoke("ben", now=3.0)
    assert copy_keys(file, table) == 2, "once more"
    theirs = Keys(table)
    assert theirs.find(first) is not None
    assert theirs.find(second) is None
    assert copy_keys(table, file) == 2
    assert Keys(file).find(second) is None
