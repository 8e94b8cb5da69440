"""Small files, read and written whole."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolfold.errors import ConfigError
from toolfold.storage.files import MAX_BYTES, read_file, replace_file


def test_what_was_written_is_read_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o644)

    replace_file(path, b"new")

    assert read_file(path) == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_several_may_write_at_once_and_leave_nothing_else_behind(tmp_path: Path) -> None:
    contents = [bytes([65 + number]) * 100_000 for number in range(8)]
    with ThreadPoolExecutor(8) as writers:
        list(writers.map(lambda content: replace_file(tmp_path / "file", content), contents * 5))

    assert read_file(tmp_path / "file") in contents
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_an_absent_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert read_file(tmp_path / "absent") is None
    assert read_file(tmp_path / "file/below") is None


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")

    for name in ("pipe", "endless", ".", "loop"):
        with pytest.raises(ConfigError):
            read_file(tmp_path / name)


def test_a_file_is_read_up_to_the_bound_and_no_further(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * MAX_BYTES)
    assert read_file(path) == b"x" * MAX_BYTES

    path.write_bytes(b"x" * (MAX_BYTES + 1))
    with pytest.raises(ConfigError, match="larger"):
        read_file(path)
