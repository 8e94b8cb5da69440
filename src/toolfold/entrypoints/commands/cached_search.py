"""`toolfold tools search` without reading the configuration, as long as nothing has changed.

What a search needs is kept in one file, under a name made of everything that is not a file: the
project, the options, the environment. Inside stand the files that the answer depends on, with
their times and sizes; where one has changed, appeared or gone, the configuration is read again. So
the most frequent question is answered in little more than the start of the interpreter.
"""

import json
import os
from argparse import Namespace
from collections.abc import Iterable

from toolfold.catalog.search.discovery import ToolIndex
from toolfold.errors import StoreError
from toolfold.relay.manifest import deciding_project, file_state
from toolfold.relay.paths import digest


def kept_index(arguments: Namespace) -> tuple[ToolIndex, dict[str, str]] | None:
    """Return the index and the line shown of each tool, if they are kept and still hold."""
    try:
        with open(path_of(arguments), "rb") as file:  # noqa: PTH123  # pathlib is slow to import
            kept = json.loads(file.read())
        if any(file_state(path) != state for path, state in kept["watched"].items()):
            return None
        return ToolIndex.from_json(kept["index"]), kept["lines"]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, StoreError):
        return None


def print_hits(arguments: Namespace, index: ToolIndex, lines: dict[str, str]) -> None:
    """Print the tools that fit the query, a line each, and what no tool mentions."""
    query = " ".join(arguments.query)
    result = index.search(query, limit=max(1, arguments.limit), server=arguments.server)
    for tool in result.hits:
        print(lines[tool.path])
    if not result.hits:
        print(f"No tool matches {query!r}.")
    if result.unmatched:
        print(f"(no tool mentions: {', '.join(result.unmatched)})")


def as_kept(index: ToolIndex, lines: dict[str, str], watched: Iterable[str]) -> str:
    """Return the text of a file for `kept_index`; it holds while `watched` stay as they are."""
    states = {path: file_state(path) for path in watched}
    return json.dumps({"watched": states, "index": index.to_json(), "lines": lines})


def path_of(arguments: Namespace) -> str:
    """Return where the index is kept for this directory, these options and this environment."""
    environment = os.environ
    home = environment.get("TOOLFOLD_HOME")
    cache = environment.get("XDG_CACHE_HOME") or f"{environment.get('HOME', '')}/.cache"
    here = os.getcwd()  # noqa: PTH109
    config = arguments.config and os.path.join(here, arguments.config)  # noqa: PTH118
    project = deciding_project(here)
    known = repr((project, config, arguments.set, sorted(environment.items())))
    name = digest(known.encode(errors="replace").decode())
    return f"{home}/cache/search/{name}.json" if home else f"{cache}/toolfold/search/{name}.json"
