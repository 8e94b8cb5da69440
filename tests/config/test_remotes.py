"""The notes of a project are named after its git remote, in every checkout of it."""

import os
import subprocess
from pathlib import Path

import pytest
from config_home import Place

from toolfold.config.paths import project_name
from toolfold.config.remotes import notes_file, notes_name, remote_name

REMOTE = "git@github.com:ada/api.git"


def git(directory: Path, *arguments: str) -> None:
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ALLOW_PROTOCOL": "file",
    }
    subprocess.run(["git", *arguments], cwd=directory, env=environ, check=True, capture_output=True)


def repository(directory: Path, *, remote: str = "") -> Path:
    directory.mkdir(parents=True)
    git(directory, "init", "--quiet")
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    git(directory, *who, "commit", "--quiet", "--allow-empty", "-m", "Begin")
    if remote:
        git(directory, "remote", "add", "origin", remote)
    return directory.resolve()


@pytest.mark.parametrize(
    "address",
    [
        "git@github.com:ada/api.git",
        "git@GitHub.com:ada/api",
        "github.com:ada/api.git",
        "https://github.com/ada/api",
        "https://github.com/ada/api.git/",
        "https://ada:ghp_secret@github.com/ada/api.git",
        "ssh://git@github.com/ada/api.git",
        "ssh://git@github.com:22//ada/api",
        "git://github.com/ada/api",
        "HTTPS://GITHUB.COM/ada/api",
        "git+ssh://git@github.com/ada/api.git",
    ],
)
def test_all_addresses_of_a_repository_are_one_name(address: str) -> None:
    assert remote_name(address) == "github.com/ada/api"


@pytest.mark.parametrize(
    "address",
    [
        "",
        "../api.git",
        "/srv/git/api.git",
        "./host:api",
        "C:\\git\\api",
        "file:///srv/git/api.git",
        "https:///api",
        "https://github.com/",
        "https://[::1/api",
        "git@github.com:ada/api\x1b[2J",
        "https://github.com/ada%0aapi",
        "https://github.com/" + "a" * 1000,
        "ext::sh -c evil",
    ],
)
def test_what_names_no_repository_elsewhere_is_no_name(address: str) -> None:
    assert remote_name(address) == ""


def test_the_case_of_a_path_is_kept_and_two_repositories_have_two_names() -> None:
    names = {
        remote_name(f"https://{place}")
        for place in ("example.org/a/b", "example.org/A/b", "example.net/a/b", "example.org/a/b/c")
    }

    assert len(names) == 4


def test_a_clone_is_named_by_its_remote_and_not_by_its_directory(tmp_path: Path) -> None:
    one = repository(tmp_path / "one", remote=REMOTE)
    two = repository(tmp_path / "two", remote="https://github.com/ada/api")

    assert notes_name(one) == notes_name(two) == "github.com/ada/api"
    assert notes_file(one) == one / ".git/config"


def test_worktrees_have_the_name_of_their_repository(tmp_path: Path) -> None:
    named = repository(tmp_path / "named", remote=REMOTE)
    bare = repository(tmp_path / "local")
    for home, place in ((named, tmp_path / "a"), (bare, tmp_path / "b")):
        git(home, "worktree", "add", "--quiet", "--detach", str(place))

    assert notes_name((tmp_path / "a").resolve()) == "github.com/ada/api"
    assert notes_name((tmp_path / "b").resolve()) == project_name(bare)
    assert notes_file((tmp_path / "a").resolve()) == named / ".git/config"


def test_a_submodule_has_its_own_name(tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner")
    outer = repository(tmp_path / "outer", remote=REMOTE)
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", str(inner), "sub")
    git(outer / "sub", "remote", "set-url", "origin", "https://example.org/ada/sub.git")

    assert notes_name(outer / "sub") == "example.org/ada/sub"


@pytest.mark.parametrize("pointer", ["worktrees/a", "."])
def test_a_pointer_to_a_repository_that_does_not_know_it_counts_for_nothing(
    tmp_path: Path, pointer: str
) -> None:
    home = repository(tmp_path / "home", remote=REMOTE)
    git(home, "worktree", "add", "--quiet", "--detach", str(tmp_path / "a"))
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    (hostile / ".git").write_text(f"gitdir: {home / '.git' / pointer}\n")

    assert notes_name(hostile) == project_name(hostile)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[remote]\nurl = https://example.org/a/b\n",
        '[remote "a"]\nurl = https://example.org/a/b\n[remote "b"]\nurl = https://x.org/a/b\n',
        '[remote "origin"]\nurl = /srv/a\n',
        "\0\xff[[[",
        "x" * 5_000_000,
    ],
)
def test_without_a_remote_that_counts_the_directory_is_the_name(tmp_path: Path, text: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text(text, encoding="latin-1")

    assert notes_name(tmp_path) == project_name(tmp_path)


def test_settings_are_read_as_git_writes_them(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    text = '[Remote "up"] ; of us\n\t# url = no\n\tURL = "https://example.org/a/b" # here\n'
    (tmp_path / ".git/config").write_text(text)

    assert notes_name(tmp_path) == "example.org/a/b"


def test_only_notes_follow_the_remote(place: Place) -> None:
    place.write(place.project / ".git/config", f'[remote "origin"]\n\turl = {REMOTE}\n')

    config = place.load()

    assert config.notes_namespace == "github.com/ada/api"
    assert config.namespace == config.former_notes == project_name(place.project)
    assert config.workspace.name == project_name(place.project)


def test_a_namespace_that_the_user_names_counts_before_the_remote(place: Place) -> None:
    place.write(place.project / ".git/config", f'[remote "origin"]\n\turl = {REMOTE}\n')

    config = place.load(overrides={"memory.namespace": "mine"})

    assert (config.notes_namespace, config.namespace, config.former_notes) == ("mine", "mine", "")
