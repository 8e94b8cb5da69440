"""Every command that takes `--json`, each tried for real, one after the other on one machine."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from toolfold.entrypoints.cli import make_parser, run_command

Answers = dict[str, Any]
Step = tuple[str, Callable[[Answers], list[str]]]

_SHOP = {"command": sys.executable, "args": ["-P", "-m", "toolfold.entrypoints.demo_server"]}
_CODE = "import shop\nprint(shop.get_customer(id=7)['name'])"
_ASKED = "import shop\nshop.set_plan(id=7, plan='paid')"
_SKILL = 'def double(n: int) -> int:\n    """Return twice `n`."""\n    return 2 * n\n'
_SAVE = f"import skills\nskills.save('double', source={_SKILL!r}, description='Double a number.')"
_FILE = "open('/workspace/a.txt', 'w').write('x')"


def prepare(home: Path) -> None:
    """Make a user with a client, a project and some files, where the walk goes."""
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"other": {"command": "true"}}}))
    (home / "shop.json").write_text(json.dumps({"mcpServers": {"shop": _SHOP}}))
    (home / "text.md").write_text("# Title\n\nAda wrote the first program.\n")


def _words(*words: str) -> Callable[[Answers], list[str]]:
    return lambda _answers: list(words)


def _on(verb: str, *more: str) -> Callable[[Answers], list[str]]:
    return lambda a: ["memory", verb, _id(a["memory store"]), *more]


def _id(answer: Any) -> str:
    return str(answer if isinstance(answer, str) else answer.get("hash", answer.get("id")))


_MEMORY: tuple[Step, ...] = (
    ("memory store", _words("memory", "store", "Ada likes tea", "--tags", "ada")),
    ("memory tag", _on("tag", "tea")),
    ("memory search", _words("memory", "search", "tea")),
    ("memory recall", _words("memory", "recall", "today")),
    ("memory list", _words("memory")),
    ("memory get", _on("get")),
    ("memory update", _on("update", "--content", "Ada likes green tea")),
    ("memory history", lambda a: ["memory", "history", _id(a["memory update"])]),
    ("memory restore", _on("restore")),
    ("memory ingest", _words("memory", "ingest", "text.md")),
    ("memory documents", _words("memory", "documents")),
    ("memory forget-document", _words("memory", "forget-document", "text.md", "--yes")),
    ("memory record-event", _words("memory", "record-event", "deploy", "version 2 is out")),
    ("memory events", _words("memory", "events")),
    ("memory get-event", lambda a: ["memory", "get-event", _id(a["memory record-event"])]),
    ("memory create-entity", _words("memory", "create-entity", "Ada", "person")),
    ("memory search-graph", _words("memory", "search-graph", "Ada")),
    ("memory consolidate", _words("memory", "consolidate")),
    ("memory consolidations", _words("memory", "consolidations")),
    ("memory audit", _words("memory", "audit")),
    ("memory sync", _words("memory", "sync", ".")),
    ("memory export", _words("memory", "export", "out.jsonl")),
    ("memory import", _words("memory", "import", "out.jsonl")),
    ("export", _words("export", "all.jsonl")),
    ("import", _words("import", "all.jsonl")),
    ("memory health", _words("memory", "health")),
    ("memory reembed", _words("memory", "reembed")),
    ("memory delete", _on("delete", "--yes")),
    ("memory purge", _on("purge", "--yes")),
)
_STEPS: tuple[Step, ...] = (
    ("init", _words("init")),
    ("install dry", _words("install", "claude", "--dry-run")),
    ("install", _words("install", "claude", "--hooks")),
    ("sync", _words("sync")),
    ("uninstall", _words("uninstall", "claude")),
    ("uninstall dry", _words("uninstall", "claude", "--dry-run")),
    ("add", _words("add", "shop", "--", _SHOP["command"], *_SHOP["args"])),
    ("trust", _words("trust", "shop.json")),
    ("revoke", _words("trust", "shop.json", "--revoke")),
    ("logout", _words("logout", "shop")),
    ("doctor", _words("doctor")),
    ("run", _words("run", "--session", "work", "-c", _CODE)),
    ("run fails", _words("run", "-c", "1 / 0")),
    ("run file", _words("run", "-c", _FILE)),
    ("run save", _words("run", "-c", _SAVE)),
    ("tools list", _words("tools", "list")),
    ("tools search", _words("tools", "search", "customers")),
    ("tools describe", _words("tools", "describe", "shop.get_customer")),
    ("tools changes", _words("tools", "changes")),
    *_MEMORY,
    ("runs list", _words("runs")),
    ("runs show", lambda a: ["runs", "show", a["run"]["run_id"]]),
    ("runs replay", lambda a: ["runs", "replay", a["run"]["run_id"]]),
    ("runs verify", _words("runs", "verify")),
    ("runs export", _words("runs", "export", "--out", "log.jsonl")),
    ("policy ask", _words("policy", "ask", "shop.set_plan")),
    ("run asked", _words("run", "-c", _ASKED)),
    ("approve", _words("approve")),
    ("reject", lambda a: ["reject", a["approve"][0]["attempt"]]),
    ("policy show", _words("policy")),
    ("policy check", _words("policy", "check", "shop.set_plan")),
    ("policy deny", _words("policy", "deny", "shop.set_plan")),
    ("policy unset", _words("policy", "unset", "shop.get_customer")),
    ("policy import", _words("policy", "import")),
    ("privacy status", _words("privacy")),
    ("privacy on", _words("privacy", "on")),
    ("privacy off", _words("privacy", "off")),
    ("privacy check", _words("privacy", "check", "--text", "write to ada@example.org")),
    ("privacy forget", _words("privacy", "forget", "--yes")),
    ("sessions list", _words("sessions")),
    ("sessions show", _words("sessions", "show", "work")),
    ("sessions fork", _words("sessions", "fork", "work", "copy")),
    ("sessions delete", _words("sessions", "delete", "copy", "--yes")),
    ("sessions reset", _words("sessions", "reset", "work", "--yes")),
    ("skills list", _words("skills")),
    ("skills show", _words("skills", "show", "double")),
    ("skills test", _words("skills", "test")),
    ("skills export", _words("skills", "export", "double", "double.zip")),
    ("skills delete", _words("skills", "delete", "double")),
    ("skills rollback", _words("skills", "rollback", "double")),
    ("skills diff", _words("skills", "diff", "double", "1", "1")),
    ("workspace ls", _words("workspace")),
    ("workspace export", _words("workspace", "export", "files.zip")),
    ("workspace rm", _words("workspace", "rm", "a.txt", "--yes")),
    ("savings", _words("savings")),
    ("savings by tool", _words("savings", "--by", "tool")),
    ("secrets list", _words("secrets")),
    ("keys create", _words("keys", "create", "ci")),
    ("keys list", _words("keys")),
    ("keys revoke", _words("keys", "revoke", "ci", "--yes")),
    ("keys token", _words("keys", "token")),
    ("status", _words("status")),
    ("logs", _words("logs", "shop")),
    ("stop", _words("stop")),
    ("backup", _words("backup", "all.tar.gz")),
    ("restore", _words("restore", "all.tar.gz", "--yes")),
    ("remove", _words("remove", "shop")),
)
"""What each step is called here, and its words."""


QUICK = frozenset({
    "init", "install dry", "install", "sync", "uninstall", "trust", "revoke", "privacy on",
    "privacy off", "privacy check", "policy show", "keys create", "keys list", "keys revoke",
    "workspace ls", "status", "stop", "sessions list", "skills list", "secrets list",
})  # fmt: skip
"""The steps that start nothing."""


def walk(
    read: Callable[[], tuple[str, str]], *, only: frozenset[str] | None = None
) -> Iterator[tuple[str, list[str], Any, str]]:
    """Try every step; yield its name, its words, its answer and what it said besides."""
    parser, answers = make_parser(), Answers()
    for name, words in _STEPS:
        if only is not None and name not in only:
            continue
        line = [*words(answers)]
        place = line.index("--") if "--" in line else len(line)
        line.insert(place, "--json")
        run_command(line, parser)
        out, err = read()
        try:
            answers[name] = json.loads(out)
        except ValueError:
            answers[name] = None
            err = f"no JSON: {out[:200]!r} {err}"
        yield name, line, answers[name], err
