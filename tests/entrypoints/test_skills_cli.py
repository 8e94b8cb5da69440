import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support import python

Toolfold = Callable[..., "subprocess.CompletedProcess[str]"]

SOURCE = (
    'def greet(name: str = "you") -> str:\n    """Greet somebody."""\n    return "hi " + name\n'
)


@pytest.fixture
def toolfold(tmp_path: Path, home: Path) -> Toolfold:
    (tmp_path / ".toolfold").mkdir()

    def run(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "TOOLFOLD_HOME": str(home),
            "TOOLFOLD_NO_DAEMON": "1",
        }
        return subprocess.run(
            [python(), "-m", "toolfold", *arguments],
            capture_output=True, text=True, cwd=tmp_path, timeout=55,
            env=environment | variables,
        )  # fmt: skip

    return run


@pytest.fixture
def folder(tmp_path: Path, toolfold: Toolfold) -> Path:
    """A skill that was saved and used."""
    code = f"import skills\nskills.save('hello.greet', {SOURCE!r}, 'Greet people')"
    assert toolfold("run", "-c", code).returncode == 0
    assert (
        toolfold("run", "-c", "from skills.hello import greet\ngreet('Ada')").stdout == "hi Ada\n"
    )
    return tmp_path / ".toolfold" / "skills" / "hello" / "greet"


def editor(tmp_path: Path, old: str, new: str) -> str:
    script = tmp_path / "editor.py"
    script.write_text(
        "import sys, pathlib\npath = pathlib.Path(sys.argv[1])\n"
        f"path.write_text(path.read_text().replace({old!r}, {new!r}))\n"
    )
    return f"{sys.executable} {script}"


def test_people_read_edit_and_share_what_agents_saved(
    toolfold: Toolfold, folder: Path, tmp_path: Path
) -> None:
    listed = toolfold("skills", "list")
    line = listed.stdout.splitlines()[1]
    assert line == "hello.greet  project  1 run, 1 succeeded  Greet people"
    [summary] = json.loads(toolfold("skills", "list", "--json").stdout)
    assert (summary["name"], summary["used"], summary["succeeded"]) == ("hello.greet", 1, 1)
    shown = toolfold("skills", "show", "hello/greet").stdout
    assert SOURCE in shown
    assert "version 1  " in shown

    edited = toolfold("skills", "edit", "hello.greet", EDITOR=editor(tmp_path, "hi ", "hello "))
    assert edited.stdout == "Saved hello.greet, version 2.\n"
    assert "hello " in (folder / "skill.py").read_text()
    assert '+    return "hello " + name' in toolfold("skills", "diff", "hello.greet").stdout

    tested = toolfold("skills", "test", "hello.greet")
    assert tested.returncode == 1
    assert "the value is another" in tested.stdout
    assert "the skill has changed since the recording" in tested.stdout
    rolled = toolfold("skills", "rollback", "hello.greet")
    assert rolled.stdout == "hello.greet is back at version 1, saved as version 3.\n"
    tested = toolfold("skills", "test")
    assert (tested.returncode, tested.stdout) == (
        0,
        "hello.greet: passed (0 recorded calls)\n",
    )

    assert toolfold("skills", "export", "hello.greet", "out").returncode == 0
    assert (tmp_path / "out" / "greet" / "skill.py").read_text() == SOURCE
    assert toolfold("skills", "export", "hello.greet", "greet.zip").returncode == 0
    with zipfile.ZipFile(tmp_path / "greet.zip") as archive:
        assert sorted(archive.namelist()) == ["greet/SKILL.md", "greet/skill.py"]
    again = toolfold("skills", "export", "hello.greet", "greet.zip")
    assert (again.returncode, "exists already" in again.stderr) == (2, True)

    assert toolfold("skills", "delete", "hello.greet").returncode == 0
    assert not folder.exists()
    assert "No skills yet" in toolfold("skills", "list").stdout


def test_a_skill_that_was_deleted_comes_back_as_it_was(toolfold: Toolfold, folder: Path) -> None:
    shown = toolfold("skills", "show", "hello.greet").stdout
    same = toolfold("skills", "rollback", "hello.greet", "1")
    deleted = toolfold("skills", "delete", "hello.greet", "--yes")
    was_there = folder.exists()
    back = toolfold("skills", "rollback", "hello.greet")

    assert "1 run, 1 succeeded" in shown
    assert (deleted.returncode, was_there) == (0, False)
    assert same.stdout == "hello.greet is back at version 1.\n"
    assert back.stdout == "hello.greet is back at version 1, saved as version 3.\n"
    assert folder.exists()


def test_what_does_not_stand_the_check_is_not_taken_over_and_not_lost(
    toolfold: Toolfold, folder: Path, tmp_path: Path
) -> None:
    wrong = toolfold(
        "skills", "edit", "hello.greet",
        EDITOR=editor(tmp_path, "name\n", "nam\n"), TMPDIR=str(tmp_path),
    )  # fmt: skip

    assert wrong.returncode == 2
    assert "'nam' is not defined" in wrong.stderr
    assert (folder / "skill.py").read_text() == SOURCE
    [kept] = tmp_path.glob("greet-*.py")
    assert "nam\n" in kept.read_text()


def test_a_broken_folder_is_listed_with_what_is_wrong(toolfold: Toolfold, tmp_path: Path) -> None:
    broken = tmp_path / ".toolfold" / "skills" / "broken"
    broken.mkdir(parents=True)
    (broken / "skill.py").write_text("x = 1")

    listed = toolfold("skills", "list")

    assert listed.returncode == 1
    assert f"broken: {broken}: SKILL.md is missing" in listed.stdout
    missing = toolfold("skills", "show", "brken")
    assert (missing.returncode, "Did you mean 'broken'?" in missing.stderr) == (2, True)
    named = toolfold("skills", "show", "../x")
    assert "cannot be called '../x'" in named.stderr
    doctor = toolfold("doctor")
    assert (doctor.returncode, "SKILL.md is missing" in doctor.stdout) == (1, True)
