"""Versions, scopes, and many who save at once."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from toolfold.errors import BadInput, NotFound, StoreError
from toolfold.skills.folders import Root
from toolfold.skills.library import Library
from toolfold.skills.models import Skill
from toolfold.skills.store import SCHEMA, SkillStore
from toolfold.storage.tables import open_tables


def library_in(home: Path, database_url: str = "") -> Library:
    (home / "project").mkdir(parents=True, exist_ok=True)
    project = Root("project", home / "project" / ".toolfold" / "skills", within=home / "project")
    user = Root("user", home / "config" / "skills", within=home / "config")
    tables = open_tables(home / "data" / "skills.db", SCHEMA, database_url, stays_open=True)
    skill_store = SkillStore(tables)
    return Library({"user": user, "project": project}, skill_store, lock=home / "data" / "skills")


@pytest.fixture
def library(tmp_path: Path, either_url: str) -> Iterator[Library]:
    library = library_in(tmp_path, either_url)
    yield library
    library.skill_store.close()


def save(library: Library, name: str, value: object, scope: str | None = None) -> int:
    source = f'def {name.rpartition(".")[2]}():\n    """Doc."""\n    return {value!r}\n'
    return library.save(library.draft(name, source, f"Returns {value}", scope))


def texts(library: Library, name: str) -> str:
    return library.find(name).texts.source


def test_the_project_comes_before_the_user(library: Library) -> None:
    save(library, "x", "user's", "user")
    save(library, "y", "user's", "user")
    save(library, "x", "project's")

    assert [(each.name, each.scope) for each in library.skills()] == [
        ("x", "project"),
        ("y", "user"),
    ]
    library.delete("x")
    assert "user's" in texts(library, "x")


def test_every_version_is_kept_and_comes_back(library: Library) -> None:
    numbers = [save(library, "x", value) for value in (1, 2, 2, 3)]
    assert numbers == [1, 2, 2, 3]

    assert "-    return 2\n+    return 3" in library.diff("x")
    assert "-    return 1\n+    return 3" in library.diff("x", 1, 3)
    assert library.rollback("x")[0].number == 2
    assert "return 2" in texts(library, "x")
    assert library.rollback("x", 1)[1] == 5
    assert "return 1" in texts(library, "x")
    library.delete("x")
    assert library.rollback("x")[0].number == 5
    assert [each.how for each in library.versions("x")] == [
        *("saved", "saved", "saved", "back to 2", "back to 1", "deleted", "back to 5")
    ]
    with pytest.raises(NotFound, match="no version 9; there are: 1, 2, 3, 4, 5"):
        library.rollback("x", 9)
    with pytest.raises(NotFound, match="never was"):
        library.rollback("never")


def test_what_people_wrote_into_the_folder_stays_when_it_is_saved_again(library: Library) -> None:
    save(library, "x", 1)
    folder = library.find("x").folder
    manifest = folder / "SKILL.md"
    manifest.write_text(manifest.read_text().replace("---\n\n", "license: MIT\n---\n\nMy words.\n"))
    save(library, "x", 2)

    assert "license: MIT" in manifest.read_text()
    assert "My words." in manifest.read_text()
    assert "description: Returns 2" in manifest.read_text()
    assert [each.how for each in library.versions("x")] == ["saved", "edited", "saved"]


def test_a_skill_is_no_group_and_a_group_no_skill(library: Library) -> None:
    save(library, "a.b", 1)
    with pytest.raises(BadInput, match="'a' is a group"):
        save(library, "a", 1)
    with pytest.raises(BadInput, match=r"'a\.b' is a skill"):
        save(library, "a.b.c", 1)


def test_files_that_people_commit_hold_nothing_of_ours_besides(library: Library) -> None:
    save(library, "a.b", 1)
    root = library.roots[0].path

    found = {str(each.relative_to(root)) for each in root.rglob("*")}

    assert found == {"a", "a/b", "a/b/SKILL.md", "a/b/skill.py"}
    assert (root / "a" / "b" / "skill.py").stat().st_mode & 0o777 == 0o644


def test_the_book_is_private(tmp_path: Path) -> None:
    save(library_in(tmp_path), "x", 1)

    assert (tmp_path / "data" / "skills.db").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_a_book_of_the_first_version_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "skills.db"
    first = SkillStore(open_tables(path, SCHEMA._replace(steps=SCHEMA.steps[:1]), ""))
    with pytest.raises(StoreError, match="skill_versions"):
        first.versions("root", "x")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "INSERT INTO versions VALUES ('root', 'x', 4, 1.0, 'saved', '', 'm', 's')"
        )
    now = SkillStore(open_tables(path, SCHEMA, ""))

    assert [each.number for each in now.versions("root", "x")] == [4]


def test_versions_are_bounded(library: Library) -> None:
    for value in range(105):
        save(library, "x", value)

    versions = library.versions("x")
    assert (versions[0].number, len(versions)) == (6, 100)


def test_a_crowd_of_skills_is_refused(library: Library) -> None:
    save(library, "x", 1)
    for number in range(499):
        shutil.copytree(library.find("x").folder, library.roots[0].path / f"x{number}")

    with pytest.raises(BadInput, match="500 skills already"):
        save(library, "y", 1)
    assert save(library, "x", 2) == 2


def test_where_the_book_cannot_be_written_nothing_is_saved(tmp_path: Path) -> None:
    library = library_in(tmp_path)
    (tmp_path / "data" / "skills.db").mkdir(parents=True)

    with pytest.raises(StoreError):
        save(library, "x", 1)
    assert library.all() == []


SAVER = """
    import sys
    sys.path[:0] = [{tests!r}]
    from pathlib import Path
    from test_library import library_in, save
    library = library_in(Path({home!r}))
    for number in range({first}, {last}):
        save(library, {name!r}, number)
        print(number, flush=True)
"""


def saver(home: Path, *, first: int, last: int, name: str) -> "subprocess.Popen[str]":
    code = SAVER.format(
        tests=str(Path(__file__).parent), home=str(home), first=first, last=last, name=name
    )
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )


def test_many_processes_save_at_once_and_no_version_is_lost(tmp_path: Path) -> None:
    with ExitStack() as running:
        savers = [
            running.enter_context(saver(tmp_path, first=first, last=first + 12, name="x"))
            for first in range(0, 400, 100)
        ]
        for process in savers:
            process.communicate(timeout=50)
            assert process.returncode == 0

    library = library_in(tmp_path)
    versions = library.versions("x")

    saved = {each.texts.source for each in versions if each.texts}
    for number in range(4):
        for value in range(number * 100, number * 100 + 12):
            assert any(f"return {value}\n" in source for source in saved)
    assert [each.number for each in versions] == list(range(1, len(versions) + 1))
    assert isinstance(library.roots[0].find("x"), Skill)


@pytest.mark.parametrize("patience", range(4))
def test_a_process_that_is_killed_while_it_saves_loses_nothing_that_it_told(
    tmp_path: Path, patience: int
) -> None:
    with saver(tmp_path, first=0, last=10_000, name="grp.x") as process:
        assert process.stdout is not None
        told = [int(process.stdout.readline()) for _ in range(3 + 2 * patience)]
        os.kill(process.pid, signal.SIGKILL)
        rest = process.stdout.read().split("\n")
    last = max([*told, *(int(line) for line in rest[:-1])])

    library = library_in(tmp_path)
    found = library.find("grp.x")

    assert int(found.texts.source.rpartition(" ")[2]) >= last
    saved = [each.texts.source for each in library.versions("grp.x") if each.texts]
    for value in range(max(0, last - 50), last + 1):
        assert any(f"return {value}\n" in source for source in saved)
    assert save(library, "grp.x", "after") > 0
