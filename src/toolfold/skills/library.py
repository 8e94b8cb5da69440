"""Library: the skills of a project and of its user, found, saved, and brought back."""

import difflib
import hashlib
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from toolfold.config.config import Config
from toolfold.errors import BadInput, NotFound, StoreError
from toolfold.skills.folders import MAX_SKILLS, FoundSkill, Root, read_skill
from toolfold.skills.manifest import check_description, new_manifest, parse_manifest
from toolfold.skills.models import (
    SCOPES,
    Skill,
    SkillFault,
    SkillScope,
    SkillTexts,
    SkillUsage,
    Version,
    folders_of,
    parse_name,
)
from toolfold.skills.store import SkillStore, skill_store_of
from toolfold.storage.files import locked

_log = logging.getLogger(__name__)

_MAX_DIFF_LINES: Final = 2_000


class SkillDraft(NamedTuple):
    """A skill as it is to be saved, and where."""

    skill: Skill
    root: Root


class Library:
    """Finds skills by name, in the project before the user's own."""

    def __init__(
        self, roots: Mapping[SkillScope, Root], skill_store: SkillStore, *, lock: Path
    ) -> None:
        self._roots = {scope: roots[scope] for scope in SCOPES if scope in roots}
        self.skill_store = skill_store
        self._lock = lock
        self._noted: dict[tuple[str, str], str] = {}

    @property
    def roots(self) -> list[Root]:
        """Where skills are looked for, in this order."""
        return list(self._roots.values())

    def kind_of(self, name: str) -> str | None:
        """Say whether `name` is a `skill`, a `group`, or nothing."""
        kinds = [root.kind_of(name) for root in self.roots]
        return "skill" if "skill" in kinds else next(filter(None, kinds), None)

    def find(self, name: str) -> Skill:
        """Return the skill of that name; one that was edited by hand becomes a version.

        Raises:
            NotFound: There is none, or it cannot be used; the message says why.
        """
        for root in self.roots:
            found = root.find(name)
            if isinstance(found, SkillFault):
                raise NotFound(
                    f"The skill {name!r} cannot be used: {found.reason} ({found.folder})."
                )
            if found:
                self._keep_up(root, found)
                return found
        raise NotFound(f"There is no skill {name!r}.{self._nearest(name)}")

    def all(self) -> list[FoundSkill]:
        """Return every skill that can be imported, and what is wrong with others."""
        found: dict[str, FoundSkill] = {}
        for root in self.roots:
            for each in root.all():
                found.setdefault(each.name, each)
                if isinstance(each, Skill):
                    self._keep_up(root, each)
        return [found[name] for name in sorted(found)]

    def skills(self) -> list[Skill]:
        """Return every skill that can be imported."""
        return [each for each in self.all() if isinstance(each, Skill)]

    def draft(
        self, name: str, source: str, description: str, scope: str | None = None
    ) -> SkillDraft:
        """Return what `save` would save, read and bounded but not checked against tools.

        Raises:
            BadInput: It cannot be a skill; the message says why.
        """
        name = parse_name(name)
        root = self._root(scope)
        kind = root.kind_of(name)
        if kind == "group":
            raise BadInput(f"{name!r} is a group of skills: choose another name.")
        if kind is None and len(root.all()) >= MAX_SKILLS:
            raise BadInput(f"There are {MAX_SKILLS} skills already: delete some first.")
        folders = folders_of(name)
        for depth in range(1, len(folders)):
            if root.kind_of(".".join(folders[:depth])) == "skill":
                raise BadInput(f"{'.'.join(folders[:depth])!r} is a skill, and cannot be a group.")
        try:
            description = check_description(description)
            folder = root.path.joinpath(*folders)
            source = source.strip("\n") + "\n"
            fresh = new_manifest(folders[-1], description, usage="pass")
            skill = read_skill(
                name, SkillTexts(str(fresh), source), scope=root.scope, folder=folder
            )
            manifest = new_manifest(folders[-1], description, usage=skill.usage)
            found = root.find(name) if kind else None
            if isinstance(found, Skill):  # what people wrote there stays
                manifest = parse_manifest(found.texts.manifest).described(description)
            texts = SkillTexts(str(manifest), source)
            return SkillDraft(read_skill(name, texts, scope=root.scope, folder=folder), root)
        except BadInput as error:
            raise BadInput(f"The skill {name!r} was not saved: {error}.") from error

    def edited(self, skill: Skill, texts: SkillTexts) -> SkillDraft:
        """Return a skill with other texts, to be saved.

        Raises:
            BadInput: They are no skill's.
        """
        root = self._roots[skill.scope]
        changed = read_skill(skill.name, texts, scope=skill.scope, folder=skill.folder)
        return SkillDraft(changed, root)

    def save(self, draft: SkillDraft, *, how: str = "saved") -> int:
        """Save a skill, over what is there; return the number of the version.

        Raises:
            StoreError: It cannot be written.
        """
        name, root = draft.skill.name, draft.root
        with self._alone():
            found = root.find(name)
            if isinstance(found, Skill):
                self.skill_store.note(root.id, name, found.texts, how="edited")
            else:
                self.skill_store.usage(
                    root.id, name
                )  # what cannot be opened fails before anything else
            root.write(name, draft.skill.texts)
            return self._noted_as(root, name, draft.skill.texts, how)

    def delete(self, name: str) -> Skill:
        """Remove a skill; its versions stay.

        Raises:
            NotFound: There is none.
            StoreError: It cannot be removed.
        """
        skill = self.find(parse_name(name))
        root = self._roots[skill.scope]
        with self._alone():
            self.skill_store.note(root.id, skill.name, skill.texts, how="edited")
            self.skill_store.note(root.id, skill.name, None, how="deleted")
            root.remove(skill.name)
        return skill

    def versions(self, name: str) -> list[Version]:
        """Return what is known of a skill's past, oldest first, also of one that was deleted.

        Raises:
            NotFound: Nothing is known.
        """
        root = self._known_root(name)
        return self.skill_store.versions(root.id, name)

    def rollback(self, name: str, number: int | None = None) -> tuple[Version, int]:
        """Bring a version back, by default the one before; return it, and its new number.

        Raises:
            NotFound: There is no such version.
            StoreError: It cannot be written.
        """
        root = self._known_root(name)
        past = [each for each in self.skill_store.versions(root.id, name) if each.texts]
        current = root.find(name)
        if isinstance(current, Skill):
            others = [each for each in past if each.texts != current.texts]
        else:
            others = past
        wanted = [each for each in past if each.number == number] if number else others[-1:]
        if not wanted or wanted[0].texts is None:
            which = f"version {number}" if number else "earlier version"
            there = ", ".join(str(each.number) for each in past) or "none"
            raise NotFound(f"{name!r} has no {which}; there are: {there}.")
        skill = read_skill(name, wanted[0].texts, scope=root.scope, folder=root.path)
        made = self.save(SkillDraft(skill, root), how=f"back to {wanted[0].number}")
        return wanted[0], made

    def diff(self, name: str, old: int | None = None, new: int | None = None) -> str:
        """Return what changed between two versions, by default the last two.

        Raises:
            NotFound: There are no such versions.
        """
        past = {each.number: each for each in self.versions(name)}
        last = new or max(past, default=0)
        first = old or max((number for number in past if number < last), default=0)
        for number in (first, last):
            if number not in past:
                there = ", ".join(map(str, past)) or "none"
                raise NotFound(
                    f"{name!r} has no version {number or 'before that'}; there are: {there}."
                )
        return "\n".join(_diff_lines(past[first], past[last]))

    def shown(self, skill: Skill) -> str:
        """Return a skill for a model or a person to read."""
        usage = self.usage(skill)
        runs = "run" if usage.used == 1 else "runs"
        done = f"{usage.used} {runs}, {usage.succeeded} succeeded"
        error = f"\nlast error {usage.last_error}" if usage.last_error else ""
        past = self.versions(skill.name)
        number = past[-1].number if past else 1
        return (
            f"{skill.line}\n{skill.usage}\n"
            f"version {number}, for {skill.scope}; {done}{error}\n\n{skill.texts.source}"
        )

    def usage(self, skill: Skill) -> SkillUsage:
        """Return how a skill has done."""
        return self.skill_store.usage(self._roots[skill.scope].id, skill.name)

    def root_of(self, skill: Skill) -> str:
        """Return under which root the book knows a skill."""
        return self._roots[skill.scope].id

    def _root(self, scope: str | None) -> Root:
        if scope is None:
            return self.roots[0]
        for known, root in self._roots.items():
            if known == scope:
                return root
        there = " or ".join(repr(each) for each in self._roots)
        raise BadInput(f"A skill cannot be saved for {scope!r}: scope is {there} here.")

    def _known_root(self, name: str) -> Root:
        for root in self.roots:
            found = root.find(name)
            if isinstance(found, Skill):
                self._keep_up(root, found)
                return root
        for root in self.roots:
            if self.skill_store.versions(root.id, name):
                return root
        raise NotFound(f"There is no skill {name!r}, and never was.{self._nearest(name)}")

    def _nearest(self, name: str) -> str:
        names = [each.name for each in self.all()]
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        if near:
            return f" Did you mean {near[0]!r}?"
        there = ", ".join(names[:10]) or "none yet"
        return f" There are: {there}."

    def _keep_up(self, root: Root, skill: Skill) -> None:
        """Keep what was written by hand as a version."""
        if self._noted.get((root.id, skill.name)) == skill.texts.digest:
            return
        try:
            self._noted_as(root, skill.name, skill.texts, "edited")
        except StoreError as error:  # the skill works without
            _log.warning("A version of the skill %s is not kept: %s", skill.name, error)

    def _noted_as(self, root: Root, name: str, texts: SkillTexts, how: str) -> int:
        number = self.skill_store.note(root.id, name, texts, how=how)
        self._noted[root.id, name] = texts.digest
        return number

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let one process at a time change skills."""
        try:
            self._lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(self._lock):
                yield
        except TimeoutError as error:
            raise StoreError(f"Skills cannot be changed now: {error}.") from error


def _diff_lines(old: Version, new: Version) -> Iterator[str]:
    before, after = old.texts or SkillTexts("", ""), new.texts or SkillTexts("", "")
    files = (
        ("SKILL.md", before.manifest, after.manifest),
        ("skill.py", before.source, after.source),
    )
    for file, was, is_now in files:
        lines = difflib.unified_diff(
            was.splitlines(),
            is_now.splitlines(),
            f"{file} (version {old.number})",
            f"{file} (version {new.number})",
            lineterm="",
        )
        for count, line in enumerate(lines):
            if count >= _MAX_DIFF_LINES:
                yield "... and more."
                break
            yield line


def open_library(config: Config, skill_store: SkillStore | None = None) -> Library:
    """Return the skills that there are for a configuration: those of the project and the user.

    Who comes with a key of another namespace has skills of that namespace alone.
    """
    data = config.directories.data
    if config.is_tenant:
        own = data / "tenants" / hashlib.sha256(config.namespace.encode()).hexdigest()[:16]
        roots: dict[SkillScope, Root] = {"user": Root("user", own / "skills", within=own)}
    else:
        user = config.directories.config
        roots = {"user": Root("user", user / "skills", within=user)}
        if project := config.project:
            roots["project"] = Root("project", project / ".toolfold" / "skills", within=project)
    return Library(roots, skill_store or skill_store_of(config), lock=data / "skills")
