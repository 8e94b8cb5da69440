"""`toolfold skills`: functions that agents saved, for people to read and share."""

import json
import os
import zipfile
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path

from toolfold.config.config import load_config
from toolfold.config.faults import shown
from toolfold.errors import BadInput, StoreError
from toolfold.skills.library import Library
from toolfold.skills.models import Skill, SkillFault
from toolfold.skills.names import parse_name
from toolfold.skills.places import open_library

_MAX_EXPORTED = 1_000
_MAX_EXPORTED_BYTES = 50 << 20


def skills_list(arguments: Namespace) -> int:
    """List every skill, and what is wrong with those that cannot be used."""
    library = _library()
    found = library.all()
    if arguments.json:
        print(json.dumps([_summary(library, each) for each in found], indent=2))
        return 0
    for each in found:
        if isinstance(each, SkillFault):
            print(f"{shown(each.name)}  not usable: {shown(str(each), max_chars=500)}")
        else:
            usage = library.usage(each)
            print(f"{each.line}  ({each.scope}; used {usage.used}, well {usage.succeeded})")
    if not found:
        places = " and ".join(str(root.path) for root in library.roots)
        print(
            f"No skill is saved yet. Agents save them with skills.save(...); they are in {places}."
        )
    return int(any(isinstance(each, SkillFault) for each in found))


def skills_show(arguments: Namespace) -> int:
    """Show one skill with its versions."""
    library = _library()
    skill = library.find(parse_name(arguments.name))
    print(f"{library.shown(skill)}\n{skill.folder}")
    for version in library.versions(skill.name):
        at = datetime.fromtimestamp(version.saved_at, tz=UTC).astimezone()
        print(f"  version {version.number}  {at:%Y-%m-%d %H:%M:%S}  {version.how}")
    return 0


def skills_export(arguments: Namespace) -> int:
    """Copy the folder of a skill, or make a zip of it."""
    skill = _library().find(parse_name(arguments.name))
    target = Path(arguments.target)
    if target.suffix == ".zip":
        _write_zip(skill, target)
    else:
        target = target / skill.folder.name
        for source, inside in _files(skill):
            (target / inside).parent.mkdir(parents=True, exist_ok=True)
            if (target / inside).exists():
                raise StoreError(f"{target / inside} is there already: nothing is written over.")
            (target / inside).write_bytes(source.read_bytes())
    print(f"Wrote {target}.")
    return 0


def skills_diff(arguments: Namespace) -> int:
    """Print what changed between two versions."""
    changed = _library().diff(parse_name(arguments.name), arguments.old, arguments.new)
    print(changed or "The versions are equal.")
    return 0


def skills_rollback(arguments: Namespace) -> int:
    """Bring a version back."""
    name = parse_name(arguments.name)
    version, number = _library().rollback(name, arguments.version)
    print(f"{name} is as it was in version {version.number}; that is version {number} now.")
    return 0


def skills_delete(arguments: Namespace) -> int:
    """Take a skill away."""
    skill = _library().delete(arguments.name)
    print(f"Deleted {skill.folder}. `toolfold skills rollback {skill.name}` brings it back.")
    return 0


def _library() -> Library:
    return open_library(load_config())


def _summary(library: Library, found: Skill | SkillFault) -> dict[str, object]:
    if isinstance(found, SkillFault):
        return {"name": found.name, "scope": found.scope, "fault": found.reason}
    return {
        "name": found.name,
        "scope": found.scope,
        "description": found.description,
        "signature": found.signature,
        "import": found.usage,
        "folder": str(found.folder),
        **library.usage(found)._asdict(),
    }


def _files(skill: Skill) -> list[tuple[Path, Path]]:
    """Return the regular files of a skill's folder, and their places in it; links stay behind."""
    found: list[tuple[Path, Path]] = []
    size = 0
    for directory, folders, names in os.walk(skill.folder):
        folders[:] = [each for each in folders if not (Path(directory) / each).is_symlink()]
        for name in sorted(names):
            path = Path(directory) / name
            if path.is_file() and not path.is_symlink():
                found.append((path, path.relative_to(skill.folder)))
                size += path.stat().st_size
        if len(found) > _MAX_EXPORTED or size > _MAX_EXPORTED_BYTES:
            raise BadInput(f"{skill.folder} holds too much to be exported: copy it yourself.")
    return found


def _write_zip(skill: Skill, target: Path) -> None:
    try:
        with zipfile.ZipFile(target, "x", zipfile.ZIP_DEFLATED) as archive:
            for source, inside in _files(skill):
                archive.write(source, Path(skill.folder.name) / inside)
    except FileExistsError as error:
        raise StoreError(f"{target} is there already: nothing is written over.") from error
