"""Trust in the files of projects."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolfold.config.trust import Trust
from toolfold.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "project/.mcp.json"
    path.parent.mkdir()
    path.write_bytes(b"{}")
    return path


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_nothing_is_trusted_at_first(state: Path, file: Path) -> None:
    assert not Trust(state).is_trusted(file, b"{}")


def test_a_trusted_file_is_trusted_by_every_later_reader(state: Path, file: Path) -> None:
    Trust(state).trust(file)

    assert Trust(state).is_trusted(file, b"{}")


def test_trust_is_in_the_content(state: Path, file: Path) -> None:
    Trust(state).trust(file)

    assert not Trust(state).is_trusted(file, b'{"mcpServers": {}}')


def test_trust_is_in_the_path(state: Path, file: Path, tmp_path: Path) -> None:
    Trust(state).trust(file)

    assert not Trust(state).is_trusted(tmp_path / "other/.mcp.json", b"{}")


def test_a_path_through_a_linked_directory_is_the_same_path(
    state: Path, file: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(file.parent)
    Trust(state).trust(tmp_path / "link/.mcp.json")

    assert Trust(state).is_trusted(file, b"{}")


def test_a_link_to_a_trusted_file_is_not_trusted_where_it_lies(
    state: Path, file: Path, tmp_path: Path
) -> None:
    Trust(state).trust(file)
    (tmp_path / "hostile").mkdir()
    (tmp_path / "hostile/.mcp.json").symlink_to(file)

    assert not Trust(state).is_trusted(tmp_path / "hostile/.mcp.json", b"{}")


def test_revoked_trust_is_gone_and_that_of_others_stays(
    state: Path, file: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.json"
    other.write_bytes(b"[]")
    trust = Trust(state)
    trust.trust(file)
    trust.trust(other)

    assert trust.revoke(file)
    assert not trust.revoke(file)
    assert not trust.is_trusted(file, b"{}")
    assert trust.is_trusted(other, b"[]")


def test_our_file_is_for_the_user_alone(state: Path, file: Path) -> None:
    Trust(state).trust(file)

    assert (state / "trust.json").stat().st_mode & 0o777 == 0o600
    assert state.stat().st_mode & 0o777 == 0o700


def test_what_is_not_there_cannot_be_trusted(state: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(ConfigError, match=path.name):
            Trust(state).trust(path)

    assert not state.exists()


@pytest.mark.parametrize("broken", [b"", b"{", b"[]", b'{"/a": 1}', b"\xff"])
def test_a_broken_file_of_ours_trusts_nothing_and_is_never_overwritten(
    state: Path, file: Path, broken: bytes
) -> None:
    Trust(state).trust(file)
    (state / "trust.json").write_bytes(broken)
    trust = Trust(state)

    assert not trust.is_trusted(file, b"{}")
    with pytest.raises(ConfigError, match=r"trust\.json"):
        trust.trust(file)
    with pytest.raises(ConfigError, match=r"trust\.json"):
        trust.revoke(file)
    assert (state / "trust.json").read_bytes() == broken


def test_a_state_directory_that_cannot_be_made_is_named(file: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()

    with pytest.raises(ConfigError, match="taken"):
        Trust(tmp_path / "taken").trust(file)


def test_no_trust_is_lost_when_many_are_given_at_once(state: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.json" for number in range(40)]
    for path in files:
        path.write_bytes(path.name.encode())

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda path: Trust(state).trust(path), files))

    assert len(json.loads((state / "trust.json").read_bytes())) == 40
    assert all(Trust(state).is_trusted(path, path.name.encode()) for path in files)
