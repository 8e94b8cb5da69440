"""The identity of a server."""

import string
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from config_home import unhurried
from hypothesis import given
from hypothesis import strategies as st

from toolfold.config.servers import LoginOptions, ServerConfig, config_hash

PAIRS = st.dictionaries(st.text(string.ascii_letters, min_size=1), st.text(), max_size=4)
SERVER = ServerConfig(
    name="crm",
    source=Path("/a/mcp.json"),
    transport="stdio",
    command="crm",
    args=("--stdio",),
    env=(("A", "1"), ("B", "2")),
)


@pytest.mark.parametrize(
    "change",
    [
        {"transport": "http"},
        {"command": "crm2"},
        {"args": ("--stdio", "")},
        {"args": ()},
        {"env": (("A", "1"),)},
        {"env": (("A", "1"), ("B", "3"))},
        {"env": (("A", "1"), ("C", "2"))},
        {"cwd": Path("/b")},
        {"url": "https://example.org"},
        {"headers": (("A", "1"),)},
    ],
)
def test_what_decides_about_the_tools_changes_the_hash(change: dict[str, Any]) -> None:
    assert config_hash(replace(SERVER, **change)) != config_hash(SERVER)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "sales"},
        {"source": Path("/b/mcp.json")},
        {"timeout_s": 1.0},
        {"concurrency": 1},
        {"rate_per_s": 1.0},
        {"serialize_writes": False},
        {"scope": "session"},
        {"oauth": LoginOptions(client_id="app", scopes=("read",))},
        {"env": (("B", "2"), ("A", "1"))},
    ],
)
def test_names_limits_and_order_do_not_change_the_hash(change: dict[str, Any]) -> None:
    assert config_hash(replace(SERVER, **change)) == config_hash(SERVER)


def test_the_hash_is_the_same_in_every_process() -> None:
    assert config_hash(SERVER) == (
        "11e0835bae92816b8056a320293226ea025b84ab76e833b9725e82e3123f3266"
    )


@unhurried
@given(st.data(), PAIRS, PAIRS)
def test_the_hash_does_not_depend_on_the_order_of_pairs(
    data: st.DataObject, env: dict[str, str], headers: dict[str, str]
) -> None:
    one = replace(SERVER, env=tuple(env.items()), headers=tuple(headers.items()))
    other = replace(
        SERVER,
        env=tuple(data.draw(st.permutations(list(env.items())))),
        headers=tuple(data.draw(st.permutations(list(headers.items())))),
    )

    assert config_hash(one) == config_hash(other)


@unhurried
@given(st.lists(st.text()), st.lists(st.text()))
def test_different_arguments_have_different_hashes(one: list[str], other: list[str]) -> None:
    hashes = [config_hash(replace(SERVER, args=tuple(args))) for args in (one, other)]

    assert (hashes[0] == hashes[1]) == (one == other)


def test_secrets_do_not_show_when_a_server_is_printed() -> None:
    server = replace(
        SERVER,
        env=(("TOKEN", "hunter2"),),
        headers=(("X-Key", "hunter2"),),
        oauth=LoginOptions(client_secret="hunter2"),
    )

    assert "hunter2" not in repr(server)
    assert hash(server) != hash(SERVER)
