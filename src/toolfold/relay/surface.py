"""What clients see of toolfold before anything is known: the one tool, and what we can do."""

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

LEGACY_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)

LISTS = ("tools", "prompts", "resources", "resourceTemplates")
"""What the answers to questions for lists are called in them."""

SURFACES = ("memory", "graph")
"""What clients can see in place of the one tool; each has a file in `surfaces`."""

_NAMED_SERVERS = 12
_NAMED_CHARS = 72
_EXAMPLES = 3
_EXAMPLE_CHARS = 8

_DESCRIPTION = """\
Run Python in a sandbox. MCP servers are modules, already imported: {servers}. \
Built in: {memory} (store, search), {graph}, skills, tools.
print(tools.describe({examples})) shows all functions you need at once, \
"{example}.NAME" one, tools.search("open issue") finds some. Use keyword arguments; no await. \
They return dicts, lists or text; failures raise RuntimeError or are text.
Do whole jobs in one run. You see what you print and the last expression: \
keep it short; show(image) shows one. Variables and files in /workspace last between runs; \
session names other variables; dry_run lists writes instead."""


def execute_code(
    servers: "Sequence[str] | None", kinds: "Mapping[str, str] | None" = None
) -> "dict[str, Any]":
    """Return `execute_code` as clients see it; None for servers that are not known yet.

    `kinds` says what servers are whose names do not. Its size does not grow with the servers.
    """
    if servers is None:
        named = "see tools.servers()"
    else:
        shown = _shown(servers)
        named = ", ".join(_named(shown, kinds or {})) or "none yet"
        if len(servers) > len(shown):
            named += f" and {len(servers) - len(shown)} more"
    return {
        "name": "execute_code",
        "description": _DESCRIPTION.format(
            servers=named, **_examples(servers or ()), **_own(servers or ())
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "code": {"type": "string"},
                "session": {"type": "string"},
                "dry_run": {"type": "boolean"},
            },
            "required": ["code"],
        },
        # Clients that load tools on demand would hide the only one there is.
        "_meta": {"anthropic/alwaysLoad": True},
    }


def as_listed(definition: "dict[str, Any]") -> "dict[str, Any]":
    """Return `execute_code` with what is for clients alone: a run can be a task of theirs."""
    return {**definition, "execution": {"taskSupport": "optional"}}


def _own(servers: "Sequence[str]") -> "dict[str, str]":
    """Return what our modules are called beside servers of the same names."""
    return {name: f"toolfold.{name}" if name in servers else name for name in ("memory", "graph")}


def _examples(servers: "Sequence[str]") -> "dict[str, str]":
    """Return servers whose names the examples have: those that are there, if they are short."""
    short = [name for name in _shown(servers) if len(name) <= _EXAMPLE_CHARS] or ["github"]
    named = short[:_EXAMPLES]
    return {"example": named[0], "examples": ", ".join(f'"{name}"' for name in named)}


def _named(shown: "Sequence[str]", kinds: "Mapping[str, str]") -> "list[str]":
    """Return the servers with their kinds, as far as there is room for these."""
    room = _NAMED_CHARS - sum(map(len, shown))
    named = list(shown)
    for at, name in enumerate(shown):
        kind = f" ({kinds[name]})" if kinds.get(name) else ""
        if len(kind) <= room:
            room -= len(kind)
            named[at] += kind
    return named


def _shown(servers: "Sequence[str]") -> "list[str]":
    """Return the servers that are named: as many as there is room for, the first in any case."""
    shown: list[str] = []
    for name in servers[:_NAMED_SERVERS]:
        if shown and sum(map(len, shown)) + len(name) > _NAMED_CHARS:
            break
        shown.append(name[:_NAMED_CHARS])
    return shown


def built_in_answers(
    version: str,
    servers: "Sequence[str] | None" = None,
    kinds: "Mapping[str, str] | None" = None,
) -> "dict[str, Any]":
    """Return the first answers of a toolfold that knows its servers at most by their entries."""
    listings: dict[str, dict[str, Any]] = {
        "tools/list": {"tools": [as_listed(execute_code(servers, kinds))]},
        "prompts/list": {"prompts": []},
        "resources/list": {"resources": []},
        "resources/templates/list": {"resourceTemplates": []},
    }
    offered = ("tools", "prompts", "resources", "completions")
    answers = _answers(version, listings, offered, announces=True)
    calls: dict[str, Any] = {"requests": {"tools": {"call": {}}}, "cancel": {}}
    answers["legacy"]["initialize"]["capabilities"]["tasks"] = calls
    for name in MODERN_VERSIONS:
        offers = answers[name]["server/discover"]["capabilities"]
        offers["extensions"] = {"io.modelcontextprotocol/tasks": {}}
    return answers


def load_surface(name: str) -> "dict[str, Any]":
    """Return the tools, and what else there is, that stand for memory or the graph alone."""
    with open(os.path.join(os.path.dirname(__file__), "surfaces", f"{name}.json")) as file:
        surface: dict[str, Any] = json.load(file)
    return surface


def surface_answers(version: str, name: str) -> "dict[str, Any]":
    """Return the first answers where clients see memory or the graph alone; these are exact."""
    surface = load_surface(name)
    listings: dict[str, dict[str, Any]] = {"tools/list": {"tools": surface["tools"]}}
    kinds = ["tools"]
    if "resources" in surface:
        kinds.append("resources")
        listings["resources/list"] = {"resources": surface["resources"]}
        listings["resources/templates/list"] = {"resourceTemplates": []}
    return _answers(version, listings, kinds)


def _answers(
    version: str,
    listings: "dict[str, dict[str, Any]]",
    kinds: "Sequence[str]",
    *,
    announces: bool = False,
) -> "dict[str, Any]":
    """Return all first answers; changes can be listened to where the server `announces` them."""
    about = {"name": "toolfold", "version": version}
    modern = {
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": about},
    }
    answers: dict[str, Any] = {
        "legacy": {
            "initialize": {
                "protocolVersion": LEGACY_VERSIONS[-1],
                "capabilities": _capabilities(kinds, announces=True, subscribe=announces),
                "serverInfo": about,
            },
            **listings,
        }
    }
    discovered = {
        "supportedVersions": list(MODERN_VERSIONS),
        "capabilities": _capabilities(kinds, announces=announces, subscribe=announces),
    }
    for name in MODERN_VERSIONS:
        answers[name] = {"server/discover": modern | discovered} | {
            method: modern | _without_tasks(listing) for method, listing in listings.items()
        }
    return answers


def _without_tasks(listing: "dict[str, Any]") -> "dict[str, Any]":
    """Return a listing as the newer protocol has it, where tools do not speak of tasks."""
    return {
        name: [{key: part for key, part in each.items() if key != "execution"} for each in entries]
        for name, entries in listing.items()
    }


def _capabilities(
    kinds: "Sequence[str]", *, announces: bool, subscribe: bool = False
) -> "dict[str, Any]":
    all_kinds: dict[str, dict[str, Any]] = {
        "tools": {"listChanged": announces},
        "prompts": {"listChanged": announces},
        "resources": {"listChanged": announces, "subscribe": subscribe},
        "completions": {},
    }
    return {kind: all_kinds[kind] for kind in all_kinds if kind in kinds}
