"""What a daemon would answer to a client's first questions, kept on disk for a relay to answer.

It stands under a name made of everything that is not a file: the directory, the options, the
environment. Inside stand the files that the answers depend on; where one has changed, appeared or
gone, the daemon is asked instead.
"""

import json
import os
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any


def base_environ(environ: "Mapping[str, str]") -> dict[str, str]:
    """Return the variables that say where things are and which settings hold."""
    named = ("HOME", "USERPROFILE", "PATH")
    return {
        name: value
        for name, value in environ.items()
        if name in named or name.startswith(("TOOLFOLD_", "XDG_"))
    }


def manifest_path(cache: str, world: "Mapping[str, Any]") -> str:
    """Return where the manifest of a client's world is kept."""
    known = [world["cwd"], world["config"], world["set"], sorted(world["environ"].items())]
    content = json.dumps(known).encode()
    name = f"{zlib.crc32(content):08x}{zlib.adler32(content):08x}"
    return os.path.join(cache, "manifests", f"{name}.json")


def read_manifest(path: str, version: str) -> "dict[str, Any] | None":
    """Return the answers if they are kept, were made by this version, and still hold."""
    try:
        with open(path, "rb") as file:
            kept = json.loads(file.read())
        if kept["version"] != version:
            return None
        if any(file_state(watched) != state for watched, state in kept["watched"].items()):
            return None
        answers: dict[str, Any] = kept["answers"]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return answers


def as_manifest(answers: "Mapping[str, Any]", watched: "Iterable[str]", version: str) -> str:
    """Return the text of a manifest that holds while the files `watched` stay as they are."""
    states = {path: file_state(path) for path in watched}
    return json.dumps({"version": version, "watched": states, "answers": answers})


def file_state(path: str) -> list[int] | None:
    """Return what changes when a file does; of a directory it only counts that it is there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    is_directory = found.st_mode & 0o170000 == 0o040000
    return [] if is_directory else [found.st_mtime_ns, found.st_size]
