"""What every command prints with `--json`, as shapes that people read and as JSON Schema.

A shape is written as in TypeScript: `{name: string, tags: [string], at?: number|null}`; `{*: T}` is an
object with names of any kind. `docs/commands.md` shows them, and a test holds real output to them.
"""

import re
from typing import Any, Final

_MESSAGE = "message: string"
_NOTE = (
    "{content: string, hash: string, type: string, tags: [string], metadata: any, source: string|null, "
    "thread: string|null, position: number|null, quality: number, created: number, links: [any], "
    "namespace: string, updated: number, version: number, deleted: number|null, until: number|null, "
    "superseded_by: string|null}"
)
_FOUND = (
    "{memories: [{hash: string, preview: string, tags: [string], created: number, score: number|null, "
    "superseded: string}], total: number, query: string}"
)
_TOOL = "{name: string, server: string, signature: string, description: string}"
_RUN = (
    "{success: boolean, text: string, output: string, trouble: string, value: any, "
    "error: null|{kind: string, message: string, line: number|null}, "
    "calls: [{tool: string, completed: number, failed: number, unknown: number}], waits: [string], "
    "images: [string], times: {*: number}, tier: string, run_id: string, session: string}"
)
_CALL = (
    "{position: number, tool: string, outcome: string, arguments: any, answer: any, "
    "error: any, started_at: number, duration_s: number|null}"
)
_ENDING = "null|{at: number, failure: string|null, reply: any}"
_RUN_HEAD = (
    "id: string, began_at: number, state: string, failure: string|null, kind: string, "
    "project: string, client: string, request: string, session: string, resumes: string, "
    "progress: null|{done: number, total: number|null, note: string}"
)
_SESSION = (
    "{name: string, tier: string, interpreter: string, created_at: number, used_at: number, "
    "runs: number, generation: string, size_bytes: number, bindings: any}"
)
_SKILL = (
    "name: string, scope: string, description: string, signature: string, import: string, "
    "folder: string, used: number, succeeded: number, last_used_at: number|null, "
    "last_error: string|null"
)
_KEY = "id: string, name: string, namespace: string, created: number, revoked: number|null"
_CLIENTS = "dry_run: boolean, changed: boolean, diffs?: {*: string}, failed: {*: string}"
_FOLDED = (
    f"{{{_CLIENTS}, clients: [{{client: string, file: string, changed: boolean, moved: [string], "
    "secrets: [string], "
    "stays: [{name: string, reason: string}], backup: string|null, approvals?: string, "
    "hooks_changed?: boolean}]}"
)
_RULE = "{tools: [string], action: string, file: string}"
_EXPORTED = "{path: string, format: string, counts: {*: number}, size: number}"
_IMPORTED = (
    "{source: string, dry_run: boolean, "
    "changes: [{what: string, added: number, updated: number, unchanged: number}], "
    "fault_count: number, faults: [any]}"
)
_BACKUP = (
    "toolfold: string, made_at: number, files: number, bytes: number, databases: {*: number|null}"
)
_COUNTS = "{*: number}"

SHAPES: Final = {
    "install": _FOLDED,
    "uninstall": f"{{{_CLIENTS}, clients: [{{client: string, file: string, changed: boolean, "
    "put_back: [string], not_put_back: [{name: string, reason: string}], "
    "hooks_changed?: boolean}], remains: [{path: string, bytes: number}], purged: boolean}",
    "sync": _FOLDED,
    "init": "{files: [{file: string, written: boolean}]}",
    "doctor": "{ok: boolean, checks: [{name: string, status: string, detail: string, "
    "seconds: number|null, fix: string}], hints: [string]}",
    "backup": f"{{file: string, {_BACKUP}}}",
    "restore": f"{{{_BACKUP}, aside: [string], fault: string|null}}",
    "run": _RUN,
    "tools list": f"[{_TOOL}]",
    "tools search": f"[{_TOOL}]",
    "tools describe": "[{name: string, server: string, tool: string, stub: string, "
    "description: string, input_schema: any, output_schema: any, read_only: boolean|null, "
    "destructive: boolean|null, idempotent: boolean|null}]",
    "tools changes": "[{tool: string, at: number|null, changes: [string]}]",
    "memory store": "string",
    "memory update": "string",
    "memory tag": "string",
    "memory search": _FOUND,
    "memory recall": _FOUND,
    "memory list": _FOUND,
    "memory get": _NOTE,
    "memory history": f"[{_NOTE}]",
    "memory restore": "boolean",
    "memory delete": "number",
    "memory purge": "number",
    "memory ingest": "{added: number, updated: number, unchanged: number, notes: number, "
    "failures: [any], missing: [string]}",
    "memory documents": "{documents: [{path: string, title: string, kind: string, chunks: number, "
    "pages: number|null, tags: [string], ingested: number}], total: number}",
    "memory forget-document": "number",
    "memory consolidate": f"{{id: string|null, strategy: string, counts: {_COUNTS}, patterns: [any], "
    "clusters: [any], associations: [any], duplicates: [any], archived: [any], skipped: number}",
    "memory sync": "{remote: string, received: number, purged: number, events: number, "
    "sent: number, conflicts: [string], unreadable: [string]}",
    "memory undo": f"{{id: string, counts: {_COUNTS}, skipped: [string]}}",
    "memory consolidations": "[{id: string, at: number, strategy: string, days_back: number|null, "
    f"counts: {_COUNTS}, undone: number|null}}]",
    "memory record-event": "string",
    "memory events": "{events: [{id: string, event_type: string, preview: string, "
    "outcome: string|null, duration_ms: number|null, session_id: string|null, at: number}], "
    "total: number}",
    "memory import": _IMPORTED,
    "memory export": _EXPORTED,
    "memory health": "{status: string, count: number, backend: string, ready: boolean}",
    "memory reembed": "number",
    "memory supersede": "boolean",
    "memory reinstate": "boolean",
    "memory get-event": "{id: string, type: string, content: string, outcome: string|null, "
    "duration_ms: number|null, session_id: string|null, metadata: any, at: number}",
    "memory create-entity": "{name: string, entity_type: string, observations: [string]}",
    "memory search-graph": "{entities: [{name: string, entity_type: string, "
    "observations: [string], score: number|null}], total: number, query: string}",
    "memory audit": f"{{notes: number, counts: {_COUNTS}, findings: [any], applied: number, "
    "undo: string|null}",
    "runs list": f"[{{{_RUN_HEAD}, calls: number, code: string, code_bytes: number}}]",
    "runs show": f"{{{_RUN_HEAD}, calls: [{_CALL}], code: string, code_bytes: number, "
    f"resumed_as: string|null, ending: {_ENDING}}}",
    "runs resume": _RUN,
    "runs replay": "[{id: string, began_at: number, state: string, code: any, "
    f"steps: [{{position: number, decisions: [any], reveals: [any], call: null|{_CALL}}}], "
    f"ending: {_ENDING}}}]",
    "runs verify": "{entries: number, runs: number, pruned: number, trimmed: number, "
    "older: number, fault: any, gaps: [any], set_aside: [any]}",
    "runs export": "{file: string, entries: number}",
    "approve": "[{run: string, attempt: string, project: string, client: string, tool: string, "
    "position: number, arguments: any, arguments_sha256: string, known: number, made: number, "
    "rule: string, definition: string, waits_alive: boolean, id: string, asked_at: number, "
    "expires_at: number, state: string, most: number, decided_at: number|null, "
    "decided_by: string}]",
    "reject": f"{{run: string, tool: string, {_MESSAGE}}}",
    "policy show": "{rules: [{action: string, rule: string, from: string}], "
    "not_in_force: [{rule: string, remedy: string}], approvals: string, "
    "clients: [{client: string, asks: string}]}",
    "policy check": "{tool: string, action: string, why: string, always_allowed: boolean}",
    "policy allow": _RULE,
    "policy deny": _RULE,
    "policy ask": _RULE,
    "policy unset": f"{{tools: [string], removed: [string], {_MESSAGE}}}",
    "policy import": "{added: [{action: string, tools: string}], left: [string], "
    "dry_run: boolean, file: string}",
    "privacy on": f"{{mode: string, file: string, {_MESSAGE}}}",
    "privacy off": f"{{mode: string, file: string, {_MESSAGE}}}",
    "privacy status": "{mode: string, servers: [{name: string, concealed: boolean, "
    "receives: null|[string], untrusted: boolean}], notes_concealed: boolean, "
    "fields: {*: string}, patterns: {*: string}, vault: {*: number}}",
    "privacy check": "{mode: string, concealed: any, counts: {*: number}}",
    "privacy forget": f"{{values?: number, vaults?: number, {_MESSAGE}}}",
    "sessions list": f"[{_SESSION}]",
    "sessions show": _SESSION,
    "sessions fork": _SESSION,
    "sessions reset": _SESSION,
    "sessions delete": _SESSION,
    "skills list": f"[{{{_SKILL}}}|{{name: string, scope: string, fault: string}}]",
    "skills show": f"{{{_SKILL}, source: string, versions: [{{number: number, saved_at: number, "
    "how: string, texts: any}]}",
    "skills test": "[{name: string, tested: boolean, message: string, calls?: number, "
    "has_changed?: boolean, differences?: [string]}]",
    "skills export": f"{{name: string, target: string, {_MESSAGE}}}",
    "skills diff": "{name: string, diff: string}",
    "skills rollback": f"{{name: string, version: number, saved_as: number, {_MESSAGE}}}",
    "skills delete": f"{{name: string, folder: string, {_MESSAGE}}}",
    "workspace ls": "[{path: string, bytes: number, changed_at: number}]",
    "workspace rm": f"{{removed: number, {_MESSAGE}}}",
    "workspace export": f"{{archive: string, files: number, {_MESSAGE}}}",
    "savings": "{runs: number, calls: number, passed: number, deferred: number, loaded: number, "
    "saved: number, saved_of_loaded: number, cut: number, by?: {*: any}}",
    "import": _IMPORTED,
    "export": _EXPORTED,
    "migrate": "{tables: [{name: string, rows: number, sha256: string}], keys: number}",
    "add": "{name: string, file: string, added: boolean, tools: null|[string], fault: string|null}",
    "remove": f"{{name: string, file: string, {_MESSAGE}}}",
    "secrets set": f"{{name: string, kept_in: string, used_by: [string], {_MESSAGE}}}",
    "secrets list": "[{name: string, kept_in: string|null, used_by: [string]}]",
    "secrets remove": f"{{name: string, removed: boolean, {_MESSAGE}}}",
    "trust": f"{{file: string, trusted: boolean, servers: [string], {_MESSAGE}}}",
    "login": f"{{server: string, logged_in: boolean, {_MESSAGE}}}",
    "logout": f"{{server: string, logged_out: boolean, {_MESSAGE}}}",
    "keys create": f"{{{_KEY}, key: string}}",
    "keys list": f"[{{{_KEY}}}]",
    "keys revoke": f"{{{_KEY}, {_MESSAGE}}}",
    "keys token": "{token: string}",
    "status": "{running: boolean, pid?: number, started?: number, version?: string, "
    "clients?: [any], servers?: [any], idle_s?: number|null, in_flight?: number, "
    "foreground?: boolean}",
    "stop": f"{{was_running: boolean, {_MESSAGE}}}",
    "logs": "{file: string, lines: [string]}",
}
"""By command, without `toolfold`."""

WITHOUT: Final = {
    "privacy reveal": "shows personal data to a person at a terminal only",
    "skills edit": "opens an editor",
    "workspace cat": "prints the file as it is",
    "serve": "runs until it is stopped",
    "ui": "opens a browser",
    "mcp": "speaks MCP",
    "hook": "speaks the client's own JSON",
    "completion": "prints a script",
    "demo": "is for people",
}
"""The commands that have no `--json`, each with the reason."""

_TOKEN = re.compile(r"\s*([A-Za-z_*][\w-]*\??|[{}\[\]:,|*])")
_SCALARS = {"string", "number", "boolean", "null"}


def schema(shape: str) -> dict[str, Any]:
    """Return a shape as JSON Schema; what it does not name may not be there."""
    tokens = _TOKEN.findall(shape)
    found = _union(tokens)
    assert not tokens, f"what is {tokens[:3]} in {shape}?"
    return found


def _union(tokens: list[str]) -> dict[str, Any]:
    parts = [_one(tokens)]
    while tokens[:1] == ["|"]:
        tokens.pop(0)
        parts.append(_one(tokens))
    return parts[0] if len(parts) == 1 else {"anyOf": parts}


def _one(tokens: list[str]) -> dict[str, Any]:
    token = tokens.pop(0)
    if token == "[":
        items = _union(tokens)
        assert tokens.pop(0) == "]"
        return {"type": "array", "items": items}
    if token == "{":
        return _object(tokens)
    assert token == "any" or token in _SCALARS, token
    return {} if token == "any" else {"type": token}


def _object(tokens: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
    found["additionalProperties"] = False
    while tokens[0] != "}":
        name = tokens.pop(0)
        assert tokens.pop(0) == ":"
        value = _union(tokens)
        if name == "*":
            found["additionalProperties"] = value
        else:
            found["properties"][name.removesuffix("?")] = value
            found["required"] += [] if name.endswith("?") else [name]
        if tokens[0] == ",":
            tokens.pop(0)
    tokens.pop(0)
    return found
