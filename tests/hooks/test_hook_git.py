"""What git says of where a conversation begins."""

import os
from pathlib import Path

import pytest
from hooks.home import git

from toolfold.entrypoints.hooks.git import Git, GitContext, GitPlace

PATH = os.environ["PATH"]


async def ask(git: Git, directory: Path, search_path: str = PATH) -> GitContext:
    place = GitPlace(directory=directory, search_path=search_path, home=str(directory))
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
