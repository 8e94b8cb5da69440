"""Name the notes of a project after its git remote, so that every checkout of it has the same.

Files of a repository are read and no git is run: a hostile one must not have a program started.
What a repository says here decides whose notes are shown, and nothing else.
"""

import re
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from toolfold.config.paths import project_name
from toolfold.errors import ConfigError
from toolfold.storage.files import read_file

_MAX_CHARS: Final = 500
_SCHEMES: Final = frozenset({"ssh", "git", "http", "https", "git+ssh", "ssh+git", "git+https"})
_SHORT: Final = re.compile(r"(?:[^@/:]+@)?(\[[^\]/]+\]|[^:/\[\]@]{2,}):(?!//|:)(.+)")
_SECTION: Final = re.compile(r'\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]\s*(.*)')
_ENTRY: Final = re.compile(r'([\w-]+)\s*=\s*(?:"([^"]*)"|([^#;"]*))')


class _Checkout(NamedTuple):
    """What is known of a directory that git manages."""

    directory: Path
    """The one that counts where there is no remote: of a worktree that of the repository."""

    settings: dict[str, str]
    """By dotted name: `remote.origin.url`."""

    file: Path
    """Where the settings stand."""


def notes_name(project: Path | None) -> str:
    """Return where the notes of a project belong: `github.com/ada/api`, else `api-3f9a2c1e`.

    The remote is `origin`, or the only one. A worktree has the name of its repository.
    """
    if project is None:
        return project_name(None)
    checkout = _checkout(project)
    remotes = {
        name: address
        for name, address in checkout.settings.items()
        if name.startswith("remote.") and name.endswith(".url") and name.count(".") > 1
    }
    only = next(iter(remotes.values())) if len(remotes) == 1 else ""
    address = remotes.get("remote.origin.url", only)
    return remote_name(address) or project_name(checkout.directory)


def remote_name(address: str) -> str:
    """Return what all addresses of one repository have in common, "" for one on this machine.

    `git@GitHub.com:ada/api.git` and `https://user:token@github.com/ada/api` are
    `github.com/ada/api`.
    """
    address = address.strip()
    if not address.isprintable() or len(address) > _MAX_CHARS:
        return ""
    host, path = _parts(address)
    place = "/".join(part for part in unquote(path).split("/") if part).removesuffix(".git")
    name = f"{host.lower().strip('[]')}/{place}"
    return name if host and place and name.isprintable() else ""


def _parts(address: str) -> tuple[str, str]:
    """Return host and path of an address; empty where it has none."""
    if "://" not in address:
        short = _SHORT.fullmatch(address)
        return (short[1], short[2]) if short else ("", "")
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        return "", ""
    return (host, parts.path) if parts.scheme.lower() in _SCHEMES else ("", "")


def notes_file(project: Path) -> Path:
    """Return the file whose change may change the name."""
    return _checkout(project).file


def _checkout(project: Path) -> _Checkout:
    mark = project / ".git"
    unknown = _Checkout(project, {}, mark / "config")
    try:
        if mark.is_dir():
            return unknown._replace(settings=_settings(_text(unknown.file)))
        return _linked(project, mark) or unknown
    except (ConfigError, OSError, ValueError):
        return unknown


def _linked(project: Path, mark: Path) -> _Checkout | None:
    """Return what is known where git's files are elsewhere; None where they know of no such place.

    Anybody can write a pointer into a directory: only what points back counts.
    """
    pointer = _text(mark)
    if not pointer.startswith("gitdir:"):
        return None
    place = (project / pointer.removeprefix("gitdir:").strip()).resolve()
    common = _text(place / "commondir").strip()
    if common:
        return _worktree(project, place, (place / common).resolve())
    file = place / "config"
    settings = _settings(_text(file))
    home = settings.get("core.worktree")  # of a submodule
    is_its_own = home is not None and (place / home).resolve() == project
    return _Checkout(project, settings, file) if is_its_own else None


def _worktree(project: Path, place: Path, common: Path) -> _Checkout | None:
    known = _text(place / "gitdir").strip()
    if not known or (place / known).resolve() != project / ".git":
        return None
    home = common.parent if common.name == ".git" else common
    return _Checkout(home, _settings(_text(common / "config")), common / "config")


def _text(path: Path) -> str:
    return (read_file(path) or b"").decode("utf-8", "replace")


def _settings(text: str) -> dict[str, str]:
    """Return the settings of a git configuration, the first of each name."""
    found: dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        entry = line.strip()
        if heading := _SECTION.match(entry):
            name, part, entry = heading.groups()
            section = name.lower() + (f".{part}" if part is not None else "")
        if section and (setting := _ENTRY.match(entry)):
            name, quoted, plain = setting.groups()
            value = plain.strip() if quoted is None else quoted
            found.setdefault(f"{section}.{name.lower()}", value)
    return found
