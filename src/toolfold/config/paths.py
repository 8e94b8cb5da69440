"""Where toolfold keeps its files, and which project a directory belongs to."""

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from toolfold.errors import ConfigError
from toolfold.relay.manifest import PROJECT_MARKS
from toolfold.relay.paths import NoUsableDirectory, find_directories


@dataclass(frozen=True, slots=True, kw_only=True)
class Directories:
    """The five directories of one user. Nothing says that they exist."""

    config: Path
    data: Path
    cache: Path
    state: Path
    runtime: Path

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Directories":
        """Follow `TOOLFOLD_HOME` if it is set, else the XDG variables, else their defaults.

        Raises:
            ConfigError: `TOOLFOLD_HOME` is relative, or a default is needed and there is no `HOME`.
        """
        try:
            found = find_directories(environ)
        except NoUsableDirectory as error:
            raise ConfigError(str(error)) from error
        return cls(**{kind: Path(path) for kind, path in found.items()})


def find_project(cwd: Path) -> Path | None:
    """Return the real path of the nearest directory, from `cwd` up, that is a project's root."""
    here = cwd.resolve()
    for directory in (here, *here.parents):
        if any(_exists(directory / mark) for mark in PROJECT_MARKS):
            return directory
    return None


def project_name(project: Path | None) -> str:
    """Return what a project is called where its notes and files are kept: `api-3f9a2c1e`."""
    if project is None:
        return "default"
    digest = hashlib.sha256(os.fsencode(project)).hexdigest()[:8]
    return f"{project.name or 'root'}-{digest}"


def workspace_place(directories: Directories, project: Path | None, tenant: str) -> Path:
    """Return where the files of a project are kept, or those of a namespace that has keys."""
    if not tenant:
        return directories.data / "projects" / project_name(project)
    digest = hashlib.sha256(tenant.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    words = re.sub(r"[^A-Za-z0-9_-]+", "-", tenant)[:32]
    return directories.data / "namespaces" / f"{words}-{digest}"


def project_server_file(project: Path) -> Path | None:
    """Return the file that names the project's servers: its own for toolfold before `.mcp.json`."""
    for name in (".toolfold/mcp.json", ".mcp.json"):
        if _exists(project / name):
            return locate(project / name)
    return None


def locate(path: Path) -> Path:
    """Resolve the directory of `path` but not its last name.

    What a file of servers says depends on where it lies: relative commands start there. So a link
    to a file elsewhere is a file of its own, and is trusted on its own.
    """
    return path.parent.resolve() / path.name


def home_of(server_file: Path) -> Path:
    """Return the directory from which relative paths in a file of servers start."""
    directory = server_file.parent
    return directory.parent if directory.name == ".toolfold" else directory


def _exists(path: Path) -> bool:
    try:
        path.lstat()
    except OSError:
        return False
    return True
