"""`toolfold skills`: functions that agents saved, for people to read and share."""

import os
import zipfile
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path

from toolfold.config.config import load_config
from toolfold.entrypoints.parser import unknown
from toolfold.entrypoints.screen import Cell, Column, print_json, print_table, tell
from toolfold.errors import BadInput, NotFound, StoreError, count, shown
from toolfold.skills.library import Library, open_library
from toolfold.skills.models import Skill, SkillFault, parse_name

_COLUMNS = (Column("SKILL"), Column("SCOPE"), Column("USED"), Column("DOES", is_wide=True))
_MAX_EXPORTED = 1_000
_MAX_EXPORTED_BYTES = 50 << 20


def skills_list(arguments: Namespace) -> int:
    """List every skill, and what is wrong with those that cannot be used."""
    library = _library()
    found = library.all()
    if arguments.json:
        print_json([_summary(library, each) for each in found])
        return 0
    if found:
        print_table(_COLUMNS, [_row(library, each) for each in found])
    else:
        places = " and ".join(str(root.path) for root in library.roots)
        print(
            f"No skills yet. Agents save them with skills.save(...); they are stored in {places}."
        )
    return int(any(isinstance(each, SkillFault) for each in found))


def skills_show(arguments: Namespace) -> int:
    """Show one skill with its versions."""
    library = _library()
    skill = _find(library, arguments.name)
    if arguments.json:
        versions = [version._asdict() for version in library.versions(skill.name)]
        source = {"source": skill.texts.source, "versions": versions}
        print_json(_summary(library, skill) | source)
        return 0
    print(f"{library.shown(skill)}\n{skill.folder}")
    for version in library.versions(skill.name):
        at = datetime.fromtimestamp(version.saved_at, tz=UTC).astimezone()
        print(f"  version {version.number}  {at:%Y-%m-%d %H:%M:%S}  {version.how}")
    return 0


def skills_export(arguments: Namespace) -> int:
    """Copy the folder of a skill, or make a zip of it."""
    skill = _find(_library(), arguments.name)
    target = Path(arguments.target)
    if target.suffix == ".zip":
        _write_zip(skill, target)
    else:
        target = target / skill.folder.name
        for source, inside in _files(skill):
            (target / inside).parent.mkdir(parents=True, exist_ok=True)
            if (target / inside).exists():
                raise StoreError(f"{target / inside} exists already. Choose another target.")
            (target / inside).write_bytes(source.read_bytes())
    tell(arguments, f"Wrote {target}.", name=skill.name, target=str(target))
    return 0


def skills_diff(arguments: Namespace) -> int:
    """Print what changed between two versions."""
    library = _library()
    skill = _find(library, arguments.name)
    changed = library.diff(skill.name, arguments.old, arguments.new)
    if arguments.json:
        print_json({"name": skill.name, "diff": changed})
    else:
        print(changed or "The versions are equal.")
    return 0


def skills_rollback(arguments: Namespace) -> int:
    """Bring a version back."""
    name = parse_name(arguments.name)
    version, number = _library().rollback(name, arguments.version)
    saved = "" if number == version.number else f", saved as version {number}"
    sentence = f"{name} is back at version {version.number}{saved}."
    tell(arguments, sentence, name=name, version=version.number, saved_as=number)
    return 0


def skills_delete(arguments: Namespace) -> int:
    """Take a skill away."""
    skill = _library().delete(arguments.name)
    sentence = f"Deleted {skill.folder}. `toolfold skills rollback {skill.name}` brings it back."
    tell(arguments, sentence, name=skill.name, folder=str(skill.folder))
    return 0


def _find(library: Library, name: str) -> Skill:
    """Return a skill.

    Raises:
        NotFound: There is none; the nearest name is told.
    """
    names = [each.name for each in library.all()]
    if parse_name(name) not in names:
        raise NotFound(unknown("skill", name, map(str, names), see="`toolfold skills` lists them."))
    return library.find(parse_name(name))


def _row(library: Library, found: Skill | SkillFault) -> tuple[str | Cell, ...]:
    if isinstance(found, SkillFault):
        fault = shown(str(found), max_chars=500)
        return Cell(shown(found.name), "bad"), found.scope, "", Cell(f"broken: {fault}", "bad")
    usage = library.usage(found)
    used = f"{count(usage.used, 'run')}, {usage.succeeded:,} succeeded"
    return Cell(found.name, "name"), found.scope, used, shown(found.description)


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
            raise BadInput(f"{skill.folder} is too large to export: copy it yourself.")
    return found


def _write_zip(skill: Skill, target: Path) -> None:
    try:
        with zipfile.ZipFile(target, "x", zipfile.ZIP_DEFLATED) as archive:
            for source, inside in _files(skill):
                archive.write(source, Path(skill.folder.name) / inside)
    except FileExistsError as error:
        raise StoreError(f"{target} exists already. Choose another name.") from error
