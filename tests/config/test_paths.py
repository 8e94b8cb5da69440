"""Directories and projects."""

import os
from pathlib import Path

import pytest

from toolfold.config.paths import (
    Directories,
    find_project,
    home_of,
    project_name,
    project_server_file,
)
from toolfold.errors import ConfigError
from toolfold.storage.files import make_private


def test_directories_default_to_those_of_the_home() -> None:
    assert Directories.from_environ({"HOME": "/home/ada"}) == Directories(
        config=Path("/home/ada/.config/toolfold"),
        data=Path("/home/ada/.local/share/toolfold"),
        cache=Path("/home/ada/.cache/toolfold"),
        state=Path("/home/ada/.local/state/toolfold"),
        runtime=Path("/home/ada/.local/state/toolfold/run"),
    )


def test_directories_follow_the_xdg_variables_without_a_home() -> None:
    environ = {
        "XDG_CONFIG_HOME": "/c",
        "XDG_DATA_HOME": "/d",
        "XDG_CACHE_HOME": "/e",
        "XDG_STATE_HOME": "/s",
        "XDG_RUNTIME_DIR": "/r",
    }

    assert Directories.from_environ(environ) == Directories(
        config=Path("/c/toolfold"),
        data=Path("/d/toolfold"),
        cache=Path("/e/toolfold"),
        state=Path("/s/toolfold"),
        runtime=Path("/r/toolfold"),
    )


@pytest.mark.parametrize("ignored", ["", "relative/path"])
def test_an_empty_or_relative_xdg_variable_is_ignored(ignored: str) -> None:
    environ = {"HOME": "/home/ada", "XDG_CONFIG_HOME": ignored, "XDG_RUNTIME_DIR": ignored}

    assert Directories.from_environ(environ) == Directories.from_environ({"HOME": "/home/ada"})


def test_toolfold_home_comes_before_everything_else() -> None:
    environ = {"TOOLFOLD_HOME": "/t", "HOME": "/home/ada", "XDG_RUNTIME_DIR": "/r"}

    assert Directories.from_environ(environ) == Directories(
        config=Path("/t/config"),
        data=Path("/t/data"),
        cache=Path("/t/cache"),
        state=Path("/t/state"),
        runtime=Path("/t/runtime"),
    )


@pytest.mark.parametrize(
    "environ", [{}, {"HOME": ""}, {"HOME": "ada"}, {"HOME": "/h", "TOOLFOLD_HOME": "here"}]
)
def test_directories_without_an_absolute_home_are_refused(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        Directories.from_environ(environ)


def test_a_private_directory_is_closed_to_others_whatever_the_umask_and_mode(
    tmp_path: Path,
) -> None:
    (tmp_path / "there").mkdir(mode=0o755)
    before = os.umask(0)
    try:
        make_private(tmp_path / "there")
        make_private(tmp_path / "new" / "inner")
    finally:
        os.umask(before)

    for name in ("there", "new/inner"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o700


def test_a_project_is_named_by_its_directory_and_its_whole_path() -> None:
    assert project_name(None) == "default"
    assert project_name(Path("/a/api")).startswith("api-")
    assert project_name(Path("/a/api")) != project_name(Path("/b/api"))
    assert project_name(Path("/")).startswith("root-")


@pytest.mark.parametrize("mark", [".git", ".toolfold"])
def test_the_project_is_the_nearest_marked_ancestor(tmp_path: Path, mark: str) -> None:
    inner = tmp_path / "outer/inner"
    (inner / "src/deep").mkdir(parents=True)
    (tmp_path / "outer/.git").mkdir()
    (inner / mark).mkdir()

    assert find_project(inner / "src/deep") == inner.resolve()
    assert find_project(inner) == inner.resolve()
    assert find_project(tmp_path / "outer") == (tmp_path / "outer").resolve()


def test_a_worktree_whose_git_is_a_file_is_a_project(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: elsewhere")

    assert find_project(tmp_path) == tmp_path.resolve()


def test_the_project_of_a_link_is_the_real_one(tmp_path: Path) -> None:
    (tmp_path / "real/.git").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert find_project(tmp_path / "link") == (tmp_path / "real").resolve()


def test_a_directory_below_no_mark_has_no_project() -> None:
    assert find_project(Path("/nowhere/at/all")) is None


def test_the_file_for_toolfold_comes_before_the_one_for_everybody(tmp_path: Path) -> None:
    assert project_server_file(tmp_path) is None

    (tmp_path / ".mcp.json").touch()
    assert project_server_file(tmp_path) == tmp_path.resolve() / ".mcp.json"

    (tmp_path / ".toolfold").mkdir()
    assert project_server_file(tmp_path) == tmp_path.resolve() / ".mcp.json"

    (tmp_path / ".toolfold/mcp.json").touch()
    assert project_server_file(tmp_path) == tmp_path.resolve() / ".toolfold/mcp.json"


def test_relative_paths_start_at_the_project_in_both_of_its_files() -> None:
    assert home_of(Path("/p/.mcp.json")) == Path("/p")
    assert home_of(Path("/p/.toolfold/mcp.json")) == Path("/p")
