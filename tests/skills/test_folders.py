"""Folders that mean no good, or are just broken."""

import os
from pathlib import Path

import pytest

from toolfold.errors import StoreError
from toolfold.skills.folders import Root
from toolfold.skills.models import Skill, SkillFault, SkillTexts

GOOD = 'def {name}():\n    """Doc."""\n'


@pytest.fixture
def root(tmp_path: Path) -> Root:
    path = tmp_path / "project" / ".toolfold" / "skills"
    path.mkdir(parents=True)
    return Root("project", path, within=tmp_path / "project")


def put(root: Root, name: str, *, source: str = "", manifest: str = "") -> Path:
    folder = root.path / name
    folder.mkdir(parents=True)
    function = folder.name.replace("-", "_")
    (folder / "skill.py").write_text(source or GOOD.format(name=function))
    said = manifest or f"---\nname: {folder.name}\ndescription: Does it.\n---\n"
    (folder / "SKILL.md").write_text(said)
    return folder


def faults(root: Root) -> dict[str, str]:
    return {each.name: each.reason for each in root.all() if isinstance(each, SkillFault)}


def test_good_folders_are_skills_with_their_groups(root: Root) -> None:
    put(root, "weekly-report")
    put(root, "memory/backup-all")
    (root.path / "README.md").write_text("not a skill")
    (root.path / ".git").mkdir()
    (root.path / "empty").mkdir()

    assert [each.name for each in root.all()] == ["memory.backup_all", "weekly_report"]
    assert isinstance(root.find("memory.backup_all"), Skill)
    assert root.kind_of("memory") == "group"
    assert root.kind_of("nothing") is None


@pytest.mark.parametrize("name", ["os", "class", "__init__", "save", "Upper", "under_score", "é"])
def test_folders_that_no_skill_can_have_are_named(root: Root, name: str) -> None:
    put(root, name)

    assert next(iter(faults(root).values())).startswith("cannot be a skill: ")
    assert not any(isinstance(each, Skill) for each in root.all())


def test_broken_files_are_named(root: Root) -> None:
    put(root, "no-function", source="x = 1")
    put(root, "no-python", source="def (")
    put(root, "no-docstring", source="def no_docstring(): pass")
    put(root, "no-front", manifest="# Hello")
    put(root, "other-name", manifest="---\nname: another\ndescription: x\n---\n")
    put(root, "too-large", source="#" * 70_000)
    put(root, "too-long", manifest=f"---\nname: too-long\ndescription: x\n---\n{'x' * 70_000}")
    (put(root, "no-text") / "skill.py").write_bytes(b"\xff\xfe")
    (put(root, "no-code") / "skill.py").unlink()
    (put(root, "no-manifest") / "SKILL.md").unlink()
    put(root, "deep", source=f"def deep(x={'-' * 30_000}1):\n    'Doc.'")

    assert {name: reason.split(":")[0][:40] for name, reason in faults(root).items()} == {
        "deep": "skill.py cannot be parsed",
        "no_code": "skill.py is missing",
        "no_docstring": "no_docstring() has no docstring",
        "no_front": "SKILL.md does not start with front matte",
        "no_function": "skill.py has no function 'no_function', "[:40],
        "no_manifest": "SKILL.md is missing",
        "no_python": "SyntaxError on line 1 of skill.py",
        "no_text": "skill.py is not UTF-8",
        "other_name": "SKILL.md says that the skill is called '",
        "too_large": "skill.py is larger than 64 KB",
        "too_long": "SKILL.md is larger than 64 KB",
    }


def test_nothing_is_read_through_links_or_pipes(root: Root, tmp_path: Path) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text('def linked():\n    """Secret."""\n')
    outside = put(Root("user", tmp_path / "elsewhere", within=tmp_path), "outside")
    (put(root, "linked") / "skill.py").unlink()
    (root.path / "linked" / "skill.py").symlink_to(secret)
    (put(root, "pipe") / "skill.py").unlink()
    os.mkfifo(root.path / "pipe" / "skill.py")
    (put(root, "device") / "skill.py").unlink()
    (root.path / "device" / "skill.py").symlink_to("/dev/zero")
    (put(root, "folder") / "skill.py").unlink()
    (root.path / "folder" / "skill.py").mkdir()
    (root.path / "outside").symlink_to(outside)
    (root.path / "group").symlink_to(outside.parent)

    found = faults(root)

    assert found.keys() == {"linked", "pipe", "device", "folder", "outside", "group"}
    for name in ("linked", "pipe", "device", "folder"):
        assert found[name] == "skill.py is not a regular file"
    assert "is a link" in found["outside"]
    assert "is a link" in found["group"]
    assert root.find("outside") is None
    assert root.find("group.outside") is None
    assert not any(isinstance(each, Skill) for each in root.all())


def test_names_that_lead_out_find_nothing(root: Root, tmp_path: Path) -> None:
    put(Root("user", tmp_path / "project", within=tmp_path), "x")

    for name in ("..x", "../x", "...x", "/x", ".", "", "a/../../x", "\0"):
        assert root.find(name) is None
        assert root.kind_of(name) is None


def test_a_root_behind_a_link_is_neither_read_nor_written(tmp_path: Path) -> None:
    project, target = tmp_path / "project", tmp_path / "target"
    (project / ".toolfold").mkdir(parents=True)
    put(Root("user", target, within=tmp_path), "x")
    (project / ".toolfold" / "skills").symlink_to(target)
    root = Root("project", project / ".toolfold" / "skills", within=project)

    assert [each.reason for each in root.all() if isinstance(each, SkillFault)] == [
        "is a link, or no directory: not looked into"
    ]
    assert root.find("x") is None
    with pytest.raises(StoreError, match="link"):
        root.write("y", SkillTexts("", ""))
    assert not (target / "y").exists()


def test_writing_leaves_links_alone_and_what_else_is_in_the_folder(
    root: Root, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    folder = put(root, "x")
    (folder / "notes.txt").write_text("keep")
    (folder / "skill.py").unlink()
    (folder / "skill.py").symlink_to(victim)

    root.write("x", SkillTexts("---\nname: x\ndescription: d\n---\n", GOOD.format(name="x")))

    assert victim.read_text() == "mine"
    assert isinstance(root.find("x"), Skill)
    root.remove("x")
    assert [each.name for each in folder.iterdir()] == ["notes.txt"]


def test_a_crowd_is_bounded_and_said_to_be(root: Root) -> None:
    for number in range(502):
        put(root, f"s{number}")
    (root.path / "crowd").mkdir()
    for number in range(2_001):
        (root.path / "crowd" / f"x{number}").mkdir()

    found = root.all()

    assert sum(isinstance(each, Skill) for each in found) <= 500
    assert "has more than 500 skills; the others are ignored" in faults(root).values()
    assert "holds more than 2,000 entries: left out" in faults(root).values()


def test_a_change_is_seen_and_what_did_not_change_is_not_read_again(root: Root) -> None:
    folder = put(root, "x")
    first = root.find("x")
    assert root.find("x") is first
    (folder / "skill.py").write_text(GOOD.format(name="x") + "    return 2\n")

    assert root.find("x") != first
