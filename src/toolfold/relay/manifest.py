"""What a daemon would answer to a client's first questions, kept on disk for a relay to answer.

A manifest stands under a name made of what is not in a file: the options, the environment, and the
project if it has a say. Inside stand the files that the answers depend on. While those are as they
were, the answers are exact; else they are a good guess until the daemon has been asked.
"""

import json
import os

from toolfold.relay.paths import digest
from toolfold.relay.surface import (
    LEGACY_VERSIONS,
    SURFACES,
    built_in_answers,
    surface_answers,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

NEEDED = frozenset(
    {
        *("HOME", "USERPROFILE", "PATH"),
        *(f"XDG_{kind}_HOME" for kind in ("CONFIG", "DATA", "CACHE", "STATE")),
        "XDG_RUNTIME_DIR",
    }
)
PROJECT_MARKS = (".toolfold", ".git")
_PROJECT_FILES = (".mcp.json", ".toolfold/mcp.json", ".toolfold/config.toml")


def base_environ(environ: "Mapping[str, str]") -> dict[str, str]:
    """Return the variables that say where things are and which settings hold."""
    return {
        name: value
        for name, value in environ.items()
        if name in NEEDED or name.startswith("TOOLFOLD_")
    }


def deciding_project(cwd: str) -> str:
    """Return the project around `cwd` if files of it have a say in which servers there are.

    Else "": in all other directories the answers are the same.
    """
    here = os.path.realpath(cwd)
    while not any(os.path.lexists(os.path.join(here, mark)) for mark in PROJECT_MARKS):
        parent = os.path.dirname(here)
        if parent == here:
            return ""
        here = parent
    return here if any(os.path.lexists(path) for path in project_files(here)) else ""


def project_files(project: str) -> list[str]:
    """Return the files of a project that have a say, whether they exist or not."""
    return [os.path.join(project, name) for name in _PROJECT_FILES]


def manifest_path(cache: str, context: "Mapping[str, Any]", *, is_users: bool = False) -> str:
    """Return where the manifest of a client's world is kept, or that of the user without it."""
    config = context["config"] and os.path.join(context["cwd"], context["config"])
    project = "" if is_users or config else deciding_project(context["cwd"])
    environ = {name: value for name, value in context["environ"].items() if name != "PATH"}
    name = digest(json.dumps([project, config, context["set"], sorted(environ.items())]))
    return os.path.join(cache, "manifests", f"{name}.json")


def as_manifest(answers: "Mapping[str, Any]", states: "Mapping[str, Any]", version: str) -> str:
    """Return the text of a manifest that is exact while files are as `file_states` said."""
    return json.dumps({"version": version, "watched": states, "answers": answers})


def file_states(paths: "Iterable[str]") -> "dict[str, list[int] | None]":
    """Return how files are now."""
    return {path: file_state(path) for path in paths}


class FirstAnswers:
    """Answers a client's first questions: exactly, or as well as is known."""

    def __init__(self, cache: str, context: "Mapping[str, Any]", version: str) -> None:
        if (surface := _named_surface(context)) != "code":
            self._exact = self._guess = surface_answers(version, surface)
            return
        path = manifest_path(cache, context)
        kept = _read(path, version)
        self._exact = kept["answers"] if kept is not None and _holds(kept) else {}
        if kept is None:
            kept = _read(manifest_path(cache, context, is_users=True), version)
        self._guess = kept["answers"] if kept is not None else built_in_answers(version)

    def exact(self, request: "dict[str, Any]", protocol: str | None) -> "dict[str, Any] | None":
        """Return the result if it is certain."""
        return _result(self._exact, request, protocol)

    def guess(self, request: "dict[str, Any]", protocol: str | None) -> "dict[str, Any] | None":
        """Return a result that the daemon may know better."""
        return _result(self._guess, request, protocol)

    def forget(self) -> None:
        """Be certain of nothing any more."""
        self._exact = {}


def _named_surface(context: "Mapping[str, Any]") -> str:
    """Return which tools the options ask for; a file may ask for others, as the daemon knows."""
    named = context["environ"].get("TOOLFOLD_TOOLS", "code")
    for option in context["set"]:
        name, _, value = option.partition("=")
        named = value.strip('"') if name == "tools" else named
    return named if named in SURFACES else "code"


def _result(
    answers: "dict[str, Any]", request: "dict[str, Any]", protocol: str | None
) -> "dict[str, Any] | None":
    method, params = request["method"], request.get("params") or {}
    result: dict[str, Any] | None = answers.get(protocol or "legacy", {}).get(method)
    if result is None or "cursor" in params:
        return None
    wanted = params.get("protocolVersion")
    if method == "initialize" and wanted in LEGACY_VERSIONS:
        return {**result, "protocolVersion": wanted}
    return result


def _read(path: str, version: str) -> "dict[str, Any] | None":
    """Return a manifest that this version made; a damaged one counts as none."""
    try:
        with open(path, "rb") as file:
            kept: dict[str, Any] = json.loads(file.read())
        is_ours = kept["version"] == version and all(
            isinstance(kept[part], dict) for part in ("answers", "watched")
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return kept if is_ours else None


def _holds(kept: "dict[str, Any]") -> bool:
    return all(file_state(path) == state for path, state in kept["watched"].items())


def file_state(path: str) -> list[int] | None:
    """Return what changes when a file does; None while it is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return [found.st_mtime_ns, found.st_size]
