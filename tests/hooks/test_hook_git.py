"""What git says of where a conversation begins."""

import os
import shutil
from pathlib import Path

import pytest
from hooks.home import git

from toolfold.entrypoints.hooks.git import Git, GitContext, GitLocation

PATH = os.environ["PATH"]


async def ask(git: Git, directory: Path, search_path: str = PATH) -> GitContext:
    place = GitLocation(directory=directory, search_path=search_path, home=str(directory))
    return await git.read(place)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "api"
    place.mkdir()
    git(place, "init", "-q", "-b", "main")
    return place


async def test_every_commit_and_checkout_is_seen(place: Path) -> None:
    asked = Git()

    async def seen() -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        found = await ask(asked, place)
        return found.branch, found.subjects, found.remarks

    assert await seen() == ("main", (), ())
    git(place, "commit", "-q", "--allow-empty", "-m", "One")
    assert await seen() == ("main", ("One",), ())
    assert await seen() == ("main", ("One",), ())
    git(place, "commit", "-q", "--allow-empty", "-m", "Two")
    assert await seen() == ("main", ("Two", "One"), ())
    git(place, "checkout", "-q", "-b", "fix/login")
    assert await seen() == ("fix/login", ("Two", "One"), ())
    git(place, "checkout", "-q", "--detach", "HEAD~1")
    assert await seen() == ("", ("One",), ())


async def test_a_linked_worktree_has_a_branch_of_its_own(place: Path) -> None:
    git(place, "commit", "-q", "--allow-empty", "-m", "One")
    git(place, "worktree", "add", "-q", "-b", "beside", str(place.parent / "beside"))
    asked = Git()

    assert (await ask(asked, place.parent / "beside")).branch == "beside"
    git(place.parent / "beside", "commit", "-q", "--allow-empty", "-m", "Two")
    assert (await ask(asked, place.parent / "beside")).subjects == ("Two", "One")
    assert (await ask(asked, place)).subjects == ("One",)


async def test_what_is_wrong_is_remarked_and_nothing_is_raised(place: Path, tmp_path: Path) -> None:
    git(place, "commit", "-q", "--allow-empty", "-m", "One")
    (tmp_path / "bare" / ".git").mkdir(parents=True)
    empty = tmp_path / "empty"
    empty.mkdir()

    without = await ask(Git(), place, str(empty))
    bare = await ask(Git(), tmp_path / "bare")
    nowhere = await ask(Git(), empty)

    assert without.remarks == ("git is not in the PATH.",)
    assert len(bare.remarks) == 2
    assert "not a git repository" in bare.remarks[0]
    assert (nowhere.branch, nowhere.remarks) == ("", ())


@pytest.mark.parametrize("name", [".git", ".git/HEAD"])
async def test_what_is_no_file_is_neither_waited_for_nor_read_to_its_end(
    place: Path, name: str, tmp_path: Path
) -> None:
    def put(make: object) -> None:
        target = place / name
        if target.is_dir():
            shutil.rmtree(target)
        target.unlink(missing_ok=True)
        make(target)  # type: ignore[operator]

    git(place, "commit", "-q", "--allow-empty", "-m", "One")
    # Without git, which has a timeout of its own.
    put(os.mkfifo)
    with_pipe = await ask(Git(), place, str(tmp_path))
    put(lambda target: target.symlink_to("/dev/zero"))
    endless = await ask(Git(), place, str(tmp_path))

    assert with_pipe.remarks == endless.remarks == ("git is not in the PATH.",)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
async def test_what_somebody_else_owns_is_left_to_git_which_refuses_it(place: Path) -> None:
    git(place, "commit", "-q", "--allow-empty", "-m", "One")
    asked = Git()
    assert (await ask(asked, place)).branch == "main"
    for path in (place, place / ".git", place / ".git" / "HEAD"):
        os.chown(path, 12_345, 12_345)

    found = await ask(asked, place)

    assert found.branch == ""
    assert "safe.directory" in "".join(found.remarks)


@pytest.mark.parametrize(
    ("branch", "about"),
    [
        ("feature/login-loop_2.x", "branch feature/login-loop_2.x"),
        ("größe", "branch größe"),
        ("x).\u00a0The\u00a0user\u00a0wants", "branch x_._The_user_wants"),
        ("a" * 300, "branch " + "a" * 100),
        ("", ""),
    ],
)
def test_the_name_of_a_branch_says_nothing_in_our_voice(branch: str, about: str) -> None:
    assert GitContext(branch=branch).about == about
