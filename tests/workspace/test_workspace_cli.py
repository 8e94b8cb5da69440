import os
import stat
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support import python

from toolfold.config.config import load_config
from toolfold.workspace.usage import Quota
from toolfold.workspace.workspace import Workspace

Run = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def toolfold(tmp_path: Path) -> Run:
    environ = {"PATH": os.environ["PATH"], "TOOLFOLD_HOME": str(tmp_path / "home")}
    config = load_config(cwd=tmp_path, environ=environ)
    workspace = Workspace(config.workspace, Quota.of(config.settings.limits))
    workspace.mkdir("d")
    workspace.save("d/a.bin", bytes(range(256)))
    workspace.save("b.csv", b"a,b\n1,2\n")
    (workspace.root / "link").symlink_to("/etc/passwd")

    def run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = [python(), "-m", "toolfold", "workspace", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, check=False)

    return run


def test_files_are_listed_with_what_is_used(toolfold: Run) -> None:
    listed = toolfold("ls")

    names = [line.split()[-1] for line in listed.stdout.decode().splitlines()]
    assert names == ["FILE", "b.csv", "d/a.bin"]
    assert b"264 of 1,073,741,824 bytes" in listed.stderr
    assert toolfold("ls", "*.csv").stdout.count(b"\n") == 2


def test_a_file_is_printed_as_it_is(toolfold: Run) -> None:
    assert toolfold("cat", "/workspace/d/a.bin").stdout == bytes(range(256))
    for path in ("none", "link", "../usage", "/etc/passwd", "d"):
        failed = toolfold("cat", path)
        assert failed.returncode == 2
        assert failed.stdout == b""
        assert b"Traceback" not in failed.stderr


def test_what_is_removed_is_gone_and_nothing_is_by_accident(toolfold: Run) -> None:
    assert toolfold("rm").returncode == 2
    for path in ("d", "--all"):
        asked = toolfold("rm", path)
        assert (asked.returncode, asked.stdout) == (2, b"")
        assert b"pass --yes" in asked.stderr
    assert toolfold("ls").stdout.count(b"\n") == 3
    assert toolfold("rm", "d", "--yes").stdout == b"2 entries removed.\n"
    assert toolfold("ls").stdout.count(b"\n") == 2
    toolfold("rm", "--all", "--yes")
    assert toolfold("ls").stdout == b""


@pytest.mark.parametrize("name", ["x.zip", "x.tar", "x.tar.gz"])
def test_an_archive_holds_the_files_and_is_the_users_alone(
    toolfold: Run, tmp_path: Path, name: str
) -> None:
    target = tmp_path / name
    made, again = toolfold("export", name), toolfold("export", name)

    assert made.returncode == 0, made.stderr
    assert again.returncode == 2
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    if name.endswith(".zip"):
        with zipfile.ZipFile(target) as archive:
            assert sorted(archive.namelist()) == ["b.csv", "d/a.bin"]
            assert archive.read("d/a.bin") == bytes(range(256))
    else:
        with tarfile.open(target) as tar:
            assert sorted(tar.getnames()) == ["b.csv", "d/a.bin"]


def test_an_archive_of_no_known_kind_is_not_begun(toolfold: Run, tmp_path: Path) -> None:
    assert b".zip, .tar or .tar.gz" in toolfold("export", "x.rar").stderr
    assert toolfold("export", "x.zip", "none").returncode == 2
    assert not (tmp_path / "x.rar").exists()
    assert not (tmp_path / "x.zip").exists()
