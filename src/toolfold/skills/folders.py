"""Skills as folders. What is in them may come from anybody: nothing is followed out of its root.

Other people's folders do not change while we look at them; who can change files of the user at any
moment needs no skills to do harm.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

from toolfold.errors import BadInput, StoreError
from toolfold.skills.manifest import parse_manifest
from toolfold.skills.models import (
    Skill,
    SkillFault,
    SkillScope,
    SkillTexts,
    folders_of,
    function_of,
    name_of,
    symbol_of,
    why_not_named,
)
from toolfold.skills.source import MAX_BYTES, parse, read_function
from toolfold.storage.files import replace_file

MANIFEST: Final = "SKILL.md"
SOURCE: Final = "skill.py"

MAX_SKILLS: Final = 500
_MAX_ENTRIES: Final = 2_000
_MAX_DEPTH: Final = 4

FoundSkill: TypeAlias = Skill | SkillFault
_Stamp: TypeAlias = tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class _Remembered:
    stamp: _Stamp
    found: FoundSkill


class Root:
    """A directory of skills, of one project or one user."""

    def __init__(self, scope: SkillScope, path: Path, *, within: Path) -> None:
        """Take the skills in `path`; from `within` on, which is no link's business, none counts."""
        self.scope: SkillScope = scope
        self.path = path
        self._within = within
        self._known: dict[str, _Remembered] = {}

    @property
    def id(self) -> str:
        """Under which its skills are known where versions are kept."""
        return str(self.path)

    def kind_of(self, name: str) -> str | None:
        """Say whether there is a `skill`, a `group`, or nothing of that name."""
        folders = folders_of(name)
        if why_not_named(folders) and why_not_named([*folders, "x"]):
            return None
        folder = self._folder(name)
        if not self._is_inside(folder):
            return None
        if _exists(folder / SOURCE) or _exists(folder / MANIFEST):
            return "skill"
        return "group"

    def find(self, name: str) -> FoundSkill | None:
        """Return the skill of that name, or what is wrong with it; None if there is none."""
        if self.kind_of(name) != "skill":
            return None
        folders = folders_of(name)
        if why := why_not_named(folders):
            return self._fault(folders, f"cannot be a skill: {why}")
        return self._read(folders)

    def all(self) -> list[FoundSkill]:
        """Return every skill, and what is wrong with others, in the order of names."""
        found: list[FoundSkill] = []
        for folders in self._walk([]):
            if len(found) >= MAX_SKILLS:
                reason = f"has more than {MAX_SKILLS} skills; the others are ignored"
                found.append(self._fault([], reason))
                break
            found.append(folders if isinstance(folders, SkillFault) else self._read(folders))
        return sorted(found, key=lambda each: each.name)

    def write(self, name: str, texts: SkillTexts) -> Path:
        """Put a skill into its folder, each file whole or not at all.

        Raises:
            StoreError: The folder cannot be written, or is not where it seems to be.
        """
        folder = self._folder(name)
        try:
            self._make(folder.parent)
            if _exists(folder):
                self._check_inside(folder)
                _write(folder, texts)
            else:
                _create(folder, texts)
        except OSError as error:
            raise StoreError(f"The skill cannot be written to {folder}: {error}") from error
        return folder

    def remove(self, name: str) -> None:
        """Remove the two files of a skill, and its folders where nothing is left in them.

        Raises:
            StoreError: They cannot be removed.
        """
        folder = self._folder(name)
        try:
            self._check_inside(folder)
            for file in (MANIFEST, SOURCE):
                (folder / file).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"The skill in {folder} cannot be removed: {error}") from error
        with suppress(OSError):  # something else is in it
            while folder != self.path:
                folder.rmdir()
                folder = folder.parent

    def _folder(self, name: str) -> Path:
        return self.path.joinpath(*folders_of(name))

    def _walk(self, folders: list[str]) -> Iterator[list[str] | SkillFault]:
        """Yield the folders of skills, and what cannot be one, groups after their own."""
        directory = self.path.joinpath(*folders)
        if not self._is_inside(directory):
            if not folders and _exists(directory):
                yield self._fault(folders, "is a link, or no directory: not looked into")
            return
        try:
            with os.scandir(directory) as listed:
                entries = sorted(entry.name for entry in islice(listed, _MAX_ENTRIES + 1))
        except OSError as error:
            yield self._fault(folders, f"cannot be read: {error.strerror}")
            return
        if len(entries) > _MAX_ENTRIES:
            yield self._fault(folders, f"holds more than {_MAX_ENTRIES:,} entries: left out")
            return
        for entry in entries:
            if not entry.startswith(".") and entry != "__pycache__":
                yield from self._entry([*folders, entry])

    def _entry(self, folders: list[str]) -> Iterator[list[str] | SkillFault]:
        folder = self.path.joinpath(*folders)
        if folder.is_symlink():
            yield self._fault(folders, "is a link: skills are folders, so copy it here")
        elif not folder.is_dir():
            return
        elif _exists(folder / SOURCE) or _exists(folder / MANIFEST):
            why = why_not_named(folders)
            yield self._fault(folders, f"cannot be a skill: {why}") if why else folders
        elif len(folders) >= _MAX_DEPTH or (why_not_named([*folders, "x"])):
            yield self._fault(folders, "cannot be a group of skills: its name, or its depth")
        else:
            yield from self._walk(folders)

    def _read(self, folders: list[str]) -> FoundSkill:
        """Read a skill, unless it is as it was when it was read before."""
        key = name_of(folders)
        folder = self.path.joinpath(*folders)
        stamp = tuple(_stamp(folder / file) for file in (MANIFEST, SOURCE))
        known = self._known.get(key)
        if known is None or known.stamp != stamp or (0, 0, 0, 0) in stamp:
            known = self._known[key] = _Remembered(stamp, self._read_anew(folder, key))
        return known.found

    def _read_anew(self, folder: Path, name: str) -> FoundSkill:
        try:
            texts = SkillTexts(_text(folder / MANIFEST), _text(folder / SOURCE))
            return read_skill(name, texts, scope=self.scope, folder=folder)
        except BadInput as error:
            return self._fault(folders_of(name), str(error))

    def _fault(self, folders: list[str], reason: str) -> SkillFault:
        folder = self.path.joinpath(*folders)
        return SkillFault(folder=folder, scope=self.scope, name=name_of(folders), reason=reason)

    def _is_inside(self, directory: Path) -> bool:
        """Whether every step from `within` to a directory is a directory, and none a link."""
        step = self._within
        for part in directory.relative_to(self._within).parts:
            step = step / part
            try:
                if not stat.S_ISDIR(step.lstat().st_mode):
                    return False
            except OSError:
                return False
        return True

    def _make(self, folder: Path) -> None:
        step = self._within
        step.mkdir(mode=0o700, parents=True, exist_ok=True)
        for part in folder.relative_to(self._within).parts:
            step = step / part
            with suppress(FileExistsError):
                step.mkdir(mode=0o755)
        self._check_inside(folder)

    def _check_inside(self, folder: Path) -> None:
        if not self._is_inside(folder):
            raise NotADirectoryError("a part of the path is a link, or no directory")


def read_skill(name: str, texts: SkillTexts, *, scope: SkillScope, folder: Path) -> Skill:
    """Return the skill that these texts are.

    Raises:
        BadInput: They are none; the message says why.
    """
    manifest = parse_manifest(texts.manifest)
    own = folders_of(name)[-1]
    if manifest.name != own:
        raise BadInput(
            f"SKILL.md says that the skill is called {manifest.name[:80]!r}, not {own!r}"
        )
    description = manifest.description
    try:
        function = read_function(parse(texts.source), function_of(name), symbol=symbol_of(name))
    except RecursionError as error:
        raise BadInput("skill.py cannot be read: it is nested too deeply") from error
    return Skill(
        name=name,
        scope=scope,
        folder=folder,
        description=description,
        function=function,
        texts=texts,
    )


def _write(folder: Path, texts: SkillTexts) -> None:
    # The code first: with the old description it is still a skill.
    for file, text in ((SOURCE, texts.source), (MANIFEST, texts.manifest)):
        replace_file(folder / file, text.encode())
        (folder / file).chmod(0o644)  # people commit it


def _create(folder: Path, texts: SkillTexts) -> None:
    """Make a folder that is there with both files or not at all."""
    for left_behind in folder.parent.glob(f".{folder.name}.????????.tmp"):
        shutil.rmtree(left_behind, ignore_errors=True)
    unfinished = folder.with_name(f".{folder.name}.{os.urandom(4).hex()}.tmp")
    unfinished.mkdir(mode=0o755)
    try:
        _write(unfinished, texts)
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _text(path: Path) -> str:
    """Return the text of a regular file.

    Raises:
        BadInput: It is none, too large, or no text.
    """
    # A pipe must not be waited for, and a link not be followed.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise BadInput(f"{path.name} is not a regular file")
        with os.fdopen(os.open(path, flags), "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise BadInput(f"{path.name} is missing") from error
    except OSError as error:
        raise BadInput(f"{path.name} cannot be read: {error.strerror}") from error
    if len(content) > MAX_BYTES:
        raise BadInput(f"{path.name} is larger than {MAX_BYTES >> 10} KB")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{path.name} is not UTF-8") from error
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _stamp(path: Path) -> tuple[int, int, int, int]:
    """Tell whether a file is as it was; all zero if it cannot be told."""
    try:
        status = path.lstat()
    except OSError:
        return (0, 0, 0, 0)
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _exists(path: Path) -> bool:
    try:
        path.lstat()
    except OSError:
        return False
    return True
