import errno
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from toolfold.workspace.usage import Quota, WorkspaceUsage
from toolfold.workspace.workspace import Workspace

QUOTA = Quota(bytes=1_000_000, files=100, file_bytes=500_000)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "projects" / "api-12345678", QUOTA)


def test_a_workspace_that_nobody_wrote_to_is_empty_and_not_even_there(
    workspace: Workspace,
) -> None:
    assert workspace.entries() == []
    assert workspace.stat("").is_dir
    assert workspace.usage() == WorkspaceUsage(0, 0)
    assert not workspace.root.parent.exists()


def test_files_are_the_users_alone_and_never_programs(workspace: Workspace) -> None:
    workspace.mkdir("d")
    workspace.save("d/f", b"x")
    workspace.make("e")

    modes = [stat.S_IMODE(path.lstat().st_mode) for path in workspace.root.rglob("*")]
    assert sorted(modes) == [0o600, 0o600, 0o700]
    assert stat.S_IMODE(workspace.root.stat().st_mode) == 0o700


def test_what_is_written_is_counted_to_the_byte(workspace: Workspace) -> None:
    workspace.mkdir("d")
    workspace.save("d/a", b"x" * 1000)
    workspace.save("d/a", b"y" * 10)
    workspace.write("d/a", b"z" * 5)
    workspace.write("d/a", b"z" * 5, 13)
    workspace.make("b")
    workspace.truncate("b", 100)
    workspace.rename("b", "d/a")
    workspace.save("c", b"")
    workspace.unlink("c")

    assert workspace.usage() == WorkspaceUsage(100, 2)
    assert workspace.remove("d") == 2
    assert workspace.usage() == WorkspaceUsage(0, 0)


def test_nobody_sees_a_file_before_it_is_finished(workspace: Workspace) -> None:
    workspace.save("a", b"old")
    draft = workspace.create("a")
    draft.write(b"new")

    assert workspace.read("a") == b"old"
    assert [entry.name for entry in workspace.entries()] == ["a"]
    draft.finish()
    assert workspace.read("a") == b"new"


@pytest.mark.parametrize(
    ("change", "number"),
    [
        (lambda each: each.save("big", b"x" * 500_001), errno.EFBIG),
        (lambda each: each.truncate("a", 1 << 40), errno.EFBIG),
        (lambda each: each.write("a", b"x", 1 << 40), errno.EFBIG),
        (lambda each: [each.save(f"f{n}", b"x" * 400_000) for n in range(3)], errno.ENOSPC),
        (lambda each: [each.make(f"f{n}") for n in range(101)], errno.ENOSPC),
        (lambda each: [each.mkdir(f"d{n}") for n in range(101)], errno.ENOSPC),
        (lambda each: [each.create(f"d{n}") for n in range(101)], errno.ENOSPC),
    ],
)
def test_a_quota_ends_what_grows(
    workspace: Workspace, change: Callable[[Workspace], object], number: int
) -> None:
    workspace.save("a", b"1")

    with pytest.raises(OSError, match=r"\w") as error:
        change(workspace)

    assert error.value.errno == number
    used = workspace.usage()
    assert used.bytes <= QUOTA.bytes
    assert used.files <= QUOTA.files
    assert sum(path.lstat().st_size for path in workspace.root.rglob("*")) <= QUOTA.bytes


def test_a_write_that_is_refused_leaves_what_was_there(workspace: Workspace) -> None:
    workspace.save("a", b"old")

    with pytest.raises(OSError, match="One file may hold"):
        workspace.save("a", b"x" * 600_000)

    assert workspace.read("a") == b"old"
    assert workspace.usage() == WorkspaceUsage(3, 1)


OUTSIDE = ["../x", "a/../../x", "..", "/etc/passwd", "/", "d/../../../etc/passwd"]
STRANGE = [
    "a\0b",
    "a\nb",
    "\x1b[31m",
    "a\x7f",
    "\x85",
    "x" * 256,
    "é" * 128,
    "d/" * 33 + "x",
    "\udcff",
]


@pytest.mark.parametrize("path", OUTSIDE + STRANGE)
@pytest.mark.parametrize(
    "use",
    [
        Workspace.read,
        Workspace.stat,
        Workspace.entries,
        Workspace.make,
        Workspace.mkdir,
        Workspace.unlink,
        Workspace.rmdir,
        Workspace.remove,
        lambda each, path: each.save(path, b"x"),
        lambda each, path: each.write(path, b"x"),
        lambda each, path: each.rename("a", path),
        lambda each, path: each.rename(path, "b"),
    ],
)
def test_no_path_leads_outside_and_no_name_is_strange(
    workspace: Workspace, path: str, use: Callable[[Workspace, str], object]
) -> None:
    workspace.save("a", b"1")
    before = sorted(workspace.root.parent.parent.rglob("*"))

    with pytest.raises(OSError, match=r"\w"):
        use(workspace, path)

    assert sorted(workspace.root.parent.parent.rglob("*")) == before


def plant(workspace: Workspace, outside: Path) -> None:
    """Put everything into the directory that a file should not be."""
    root = workspace.root
    workspace.save("plain", b"plain")
    (root / "link").symlink_to(outside / "secret")
    (root / "dangling").symlink_to(outside / "made")
    (root / "folder").symlink_to(outside)
    (root / "up").symlink_to("../../..")
    os.link(outside / "secret", root / "hard")
    os.mkfifo(root / "pipe")
    (root / "set_uid").write_bytes(b"x")
    (root / "set_uid").chmod(0o4755)
    (root / "set_gid").write_bytes(b"x")
    (root / "set_gid").chmod(0o2755)
    if os.geteuid() == 0:
        os.mknod(root / "device", 0o600 | stat.S_IFCHR, os.makedev(1, 5))


PLANTED = [
    *("link", "dangling", "hard", "pipe", "set_uid", "set_gid", "folder"),
    *("folder/secret", "folder/made", "up/x", "device"),
]


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize(
    "use",
    [
        Workspace.read,
        Workspace.stat,
        Workspace.entries,
        lambda each, path: each.save(path, b"x"),
        lambda each, path: each.write(path, b"x"),
        lambda each, path: each.truncate(path, 0),
        lambda each, path: each.rename("plain", path),
        lambda each, path: each.rename(path, "other"),
    ],
)
def test_what_others_planted_is_never_opened(
    workspace: Workspace, tmp_path: Path, name: str, use: Callable[[Workspace, str], object]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    plant(workspace, outside)

    with pytest.raises(OSError, match=r"\w") as error:
        use(workspace, name)

    assert str(tmp_path) not in str(error.value)
    assert (outside / "secret").read_bytes() == b"secret"
    assert list(outside.iterdir()) == [outside / "secret"]


def test_what_others_planted_is_not_listed_and_can_be_removed(
    workspace: Workspace, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    plant(workspace, outside)

    assert [entry.name for entry in workspace.entries()] == ["plain"]
    assert [path for path, _ in workspace.files()] == ["plain"]
    workspace.remove("")
    assert list(workspace.root.iterdir()) == []
    assert (outside / "secret").read_bytes() == b"secret"


def test_a_file_that_is_swapped_for_a_link_at_any_time_is_not_followed(
    workspace: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    workspace.save("a", b"plain")
    (workspace.root / "link").symlink_to(tmp_path / "secret")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            (workspace.root / "link").rename(workspace.root / "a")
            (workspace.root / "link").symlink_to(tmp_path / "secret")
            (workspace.root / "plain").write_bytes(b"plain")
            (workspace.root / "plain").rename(workspace.root / "a")

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen = set()
    try:
        for _ in range(2_000):
            try:
                seen.add(workspace.read("a"))
            except OSError as error:
                seen.add(error.errno)
    finally:
        over.set()
        swapper.join()

    assert b"secret" not in seen
    assert b"plain" in seen


def test_more_files_than_the_quota_that_others_put_there_are_not_listed_for_long(
    tmp_path: Path,
) -> None:
    workspace = Workspace(tmp_path, Quota(bytes=1000, files=10, file_bytes=1000))
    workspace.save("a", b"1")
    for number in range(200):
        (workspace.root / f"f{number}").touch()
    again = Workspace(tmp_path, workspace.quota)

    with pytest.raises(OSError, match="More than 10"):
        again.entries()
    with pytest.raises(OSError, match="10 files"):
        again.make("b")
    again.remove("")
    Workspace(tmp_path, workspace.quota).make("b")


def test_counts_that_a_killed_process_left_are_measured_anew(workspace: Workspace) -> None:
    workspace.save("a", b"x" * 1000)
    workspace.create("b").write(b"x" * 1000)  # and nobody finishes it
    (workspace.root.parent / "usage").write_bytes(b"\xff" * 16)

    again = Workspace(workspace.root.parent, QUOTA)

    assert again.usage() == WorkspaceUsage(2000, 2)


WRITER = """
import sys
from pathlib import Path
from toolfold.workspace.usage import Quota
from toolfold.workspace.workspace import Workspace
workspace = Workspace(Path(sys.argv[1]), Quota(bytes=200_000, files=60, file_bytes=100_000))
wrote = 0
for number in range(200):
    try:
        workspace.save(f"{sys.argv[2]}-{number}", b"x" * 5_000)
        wrote += 1
    except OSError:
        pass
print(wrote)
"""


def test_processes_together_do_not_get_past_the_quota(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(number)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    wrote = [int(writer.communicate(timeout=50)[0]) for writer in writers]

    files = list((tmp_path / "workspace").iterdir())
    assert sum(wrote) == len(files) == 40
    assert sum(file.stat().st_size for file in files) == 200_000
    assert list((tmp_path / "drafts").iterdir()) == []


def test_threads_together_do_not_get_past_the_quota(workspace: Workspace) -> None:
    def write(name: str) -> None:
        workspace.make(name)
        for _ in range(100):
            try:
                workspace.write(name, b"x" * 5_000)
            except OSError:
                return

    writers = [threading.Thread(target=write, args=(f"t{number}",)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    assert workspace.usage() == WorkspaceUsage(1_000_000, 8)
    assert sum(status.size for _, status in workspace.files()) == 1_000_000


def test_what_a_dead_writer_left_is_cleared_away_and_what_a_living_one_writes_is_not(
    workspace: Workspace,
) -> None:
    living = workspace.create("a")
    living.write(b"1")
    (workspace.root.parent / "drafts" / "dead").write_bytes(b"x" * 100)

    again = Workspace(workspace.root.parent, QUOTA)
    again.make("b")

    assert again.usage() == WorkspaceUsage(1, 2)
    living.finish()
    assert again.read("a") == b"1"


def chain(workspace: Workspace, top: str, levels: int) -> str:
    """Make directories, each in the one before; return the path of the last."""
    path = top
    workspace.mkdir(path)
    for _ in range(levels - 1):
        path += "/d"
        workspace.mkdir(path)
    return path


def test_directories_get_no_deeper_by_being_moved(workspace: Workspace) -> None:
    chain(workspace, "old", 31)
    deepest = chain(workspace, "new", 31)

    with pytest.raises(OSError, match="32 deep") as error:
        workspace.rename("old", f"{deepest}/d")

    assert error.value.errno == errno.ENAMETOOLONG
    assert workspace.stat("old").is_dir
    workspace.mkdir("flat")
    workspace.rename("flat", f"{deepest}/d")
    workspace.rename("new", "newer")
    workspace.rename("old/d", "up")
    assert max(path.count("/") for path, _ in everything(workspace)) == 31


def everything(workspace: Workspace) -> list[tuple[str, bool]]:
    root = workspace.root
    return [(str(path.relative_to(root)), path.is_dir()) for path in root.rglob("*")]


def test_a_file_may_lie_as_deep_as_a_directory_and_be_moved_there(workspace: Workspace) -> None:
    deepest = chain(workspace, "d", 31)
    workspace.save("f", b"x")

    workspace.rename("f", f"{deepest}/f")

    assert [path for path, _ in workspace.files()] == [f"{deepest}/f"]
    assert workspace.remove("d") == 32
    assert workspace.usage() == WorkspaceUsage(0, 0)


def nest(root: Path, levels: int) -> None:
    """Nest directories more deeply than a path may be long, as another program can."""
    at = os.open(root, os.O_DIRECTORY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_DIRECTORY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)


def test_what_others_nested_too_deeply_is_left_alone_and_holds_nothing_up(
    workspace: Workspace,
) -> None:
    workspace.save("f", b"x")
    nest(workspace.root, 200)
    again = Workspace(workspace.root.parent, QUOTA)

    assert again.usage() == WorkspaceUsage(1, 33)
    assert [path for path, _ in again.files()] == ["f"]
    with pytest.raises(OSError, match="deeper than 32"):
        again.remove("d")
    assert again.stat("d").is_dir


def test_to_list_to_measure_and_to_remove_opens_each_directory_once_however_deep_it_lies(
    tmp_path: Path,
) -> None:
    workspace = Workspace(tmp_path, Quota(bytes=1000, files=1000, file_bytes=1000))
    deepest = chain(workspace, "d", 20)
    for number in range(100):
        workspace.mkdir(f"{deepest}/{number}")
        workspace.make(f"{deepest}/{number}/f")
    opened = 0

    def note(_frame: object, event: str, called: object) -> None:
        nonlocal opened
        opened += event == "c_call" and called is os.open

    again = Workspace(tmp_path, workspace.quota)
    sys.setprofile(note)
    try:
        assert len(list(workspace.files())) == 100
        assert again.usage().files == 220
        assert again.remove("d") == 220
    finally:
        sys.setprofile(None)

    assert 3 * 120 <= opened < 3 * 120 + 30
