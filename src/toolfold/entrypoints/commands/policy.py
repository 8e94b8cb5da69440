"""`toolfold policy`: which rules there are, which decides, and rules about single tools."""

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from toolfold.config.config import Config, load_config
from toolfold.entrypoints.commands.options import config_of
from toolfold.entrypoints.commands.tools import CachedCatalog
from toolfold.entrypoints.install.approval import approval_ways
from toolfold.entrypoints.screen import Cell, Column, print_json, print_line, print_table, tell
from toolfold.errors import ConfigError, NotFound, shown
from toolfold.execution.trust.approval_form import modules_of, policy_files, rules_in_force
from toolfold.execution.trust.approvals import approvals_of, scope_of
from toolfold.execution.trust.asked_clients import CLIENTS_FILE, AskedClients
from toolfold.execution.trust.guard import facts_of
from toolfold.journal.journal import journal_of
from toolfold.journal.runs import TERMINAL, Origin
from toolfold.jsontypes import Json, JsonObject
from toolfold.policy.decide import ToolFacts, decide, explain
from toolfold.policy.edit import with_rule, without_rule
from toolfold.policy.files import IMPORTED, NAME, read_imported, read_policy
from toolfold.policy.imported import RulePattern, as_toml, translated
from toolfold.policy.rules import Action, fits_pattern
from toolfold.storage.files import make_private, read_file, replace_file

_COLUMNS = (Column("ACTION"), Column("TOOLS", is_wide=True), Column("RULE", is_wide=True))
_APPROVALS = {
    "auto": "the built-in rule asks where a local client can ask; HTTP and keys always ask.",
    "always": "the built-in rule always asks; where nobody can be asked, the run waits.",
    "never": "the built-in rule never asks; your own rules still apply.",
}
_EFFECTS = {
    "allow": "called without asking from now on",
    "deny": "never called from now on",
    "ask": "needs approval from now on",
}
_STYLES = {"allow": "good", "ask": "warn", "deny": "bad"}


def policy_show(arguments: Namespace) -> int:
    """List the rules in their order."""
    config = load_config()
    found = list(rules_in_force(config))
    if arguments.json:
        print_json(_as_json(config))
        return 0
    rows = [(_action(each.action), shown(each.text), shown(each.origin)) for each in found]
    print_table(_COLUMNS, rows)
    print(f'approvals = "{config.settings.approvals}": {_APPROVALS[config.settings.approvals]}')
    names = AskedClients(config.directories.state / CLIENTS_FILE).names()
    for client, way in approval_ways(config):
        print(f"{client}: {way}.")
    if names:
        print(f"These clients refuse questions by themselves: {shown(', '.join(names))}.")
    for reason in _left_of(config, _imported(config)):
        if not reason.startswith("allow"):
            print(f"Not in force, write it into {NAME}: {shown(reason, max_chars=500)}.")
    if _is_left(config):
        print(
            "Rules of your client that allow are not in force: `toolfold policy import` adds them."
        )
    return 0


def _as_json(config: Config) -> dict[str, object]:
    """Return the rules, and those of a client that do not hold, each with the reason."""
    rules = [
        {"action": each.action, "rule": each.text, "from": each.origin}
        for each in rules_in_force(config)
    ]
    found = translated(_imported(config), modules_of=partial(modules_of, config))
    left = [{"rule": reason, "remedy": f"write it into {NAME}"} for reason in found.left]
    left += [
        {"rule": f"{action} {tools}", "remedy": "toolfold policy import"}
        for action, tools in _new(config, found.rules)
        if action == "allow"
    ]
    clients = [{"client": client, "asks": way} for client, way in approval_ways(config)]
    approvals = config.settings.approvals
    return {"rules": rules, "not_in_force": left, "approvals": approvals, "clients": clients}


def _action(action: str) -> Cell:
    return Cell(action, _STYLES.get(action, ""))


def policy_check(arguments: Namespace) -> int:
    """Show which rule decides about a tool, and why."""
    config = config_of(arguments)
    given = _given(arguments.arguments)
    client = f"key:{arguments.key}" if arguments.key else ""
    policy = policy_files(config).policy(client)
    facts = _facts(arguments, str(arguments.tool))
    scope = scope_of(config.namespace, client)
    is_allowed = approvals_of(config).is_always_allowed(scope, facts.name)
    decision = decide(policy, facts, given, arguments.count)
    if arguments.json:
        print_json(
            {
                "tool": facts.name,
                "action": decision.action.name.lower(),
                "why": decision.why,
                "always_allowed": is_allowed,
            }
        )
        return 0
    for line in explain(policy, facts, given, arguments.count):
        print(shown(line))
    if is_allowed:
        print("You always allow this tool here: you are not asked.")
    return 0


def _given(text: str) -> JsonObject:
    try:
        given = json.loads(text)
    except ValueError as error:
        raise ConfigError(
            f"The arguments are not valid JSON: {error}. Use quotes: '{{\"id\": 7}}'."
        ) from error
    if not isinstance(given, dict):
        raise ConfigError(
            f"The arguments must be a JSON object, such as '{{\"id\": 7}}', not {text}."
        )
    return given


def _facts(arguments: Namespace, name: str) -> ToolFacts:
    """Return what is known of a tool from what its server listed last.

    Raises:
        NotFound: Its server is known, or there is none of that name, and it has no such tool.
    """
    shelf = CachedCatalog(arguments)
    try:
        return facts_of(shelf.known().find(name))
    except NotFound:
        server = name.partition(".")[0]
        if server not in shelf.silent():
            raise
        print(f"{shown(server)} has not listed its tools yet; only name rules were checked.")
        return ToolFacts(name, server)


def policy_set(arguments: Namespace) -> int:
    """Write rules about tools into the user's file, before all others."""
    config, action = config_of(arguments), str(arguments.verb)
    path = config.directories.config / NAME
    if action == "allow":
        _require_person(path)
    read_policy(path)
    facts = [_named(arguments, tool) for tool in arguments.tools]
    text = _text(path)
    for each in facts:
        text = with_rule(_without_rules(text, each), action, each.name)
    _record(config, f"{action} {', '.join(each.name for each in facts)}")
    _write(path, text)
    for each in facts:
        if action != "allow":
            approvals_of(config).ask_again(config.namespace, each.name)
    if arguments.json:
        tools = [each.name for each in facts]
        print_json({"tools": tools, "action": action, "file": str(path)})
        return 0
    for each in facts:
        print_line(_action(action), f" {shown(each.name)}: {_EFFECTS[action]} ({path}).")
        if "*" in each.name and not _fits_any(arguments, each.name):
            print(f"No tool fits {shown(each.name)} now; the rule is kept for later ones.")
    return 0


def _named(arguments: Namespace, tool: str) -> ToolFacts:
    return ToolFacts(tool, tool.partition(".")[0]) if "*" in tool else _facts(arguments, tool)


def _require_person(path: Path) -> None:
    """Let only a person at a terminal make rules less strict.

    Raises:
        ConfigError: There is none.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError(
            "Only a person at a terminal can make rules less strict: type this command in one, or "
            f"edit {path}. An agent must not decide for its user."
        )


def _record(config: Config, change: str) -> None:
    """Have the audit log tell which rule the user changed, before the change."""
    journal = journal_of(config)
    origin = Origin(client=TERMINAL, project=str(config.project or config.start_directory))
    code = f"# The user changed rules: {shown(change, max_chars=500)}."
    with journal.opened(), journal.begin(origin, code, kind="request") as run:
        run.end(failure=None, reply="")


def _fits_any(arguments: Namespace, pattern: str) -> bool:
    known = map(facts_of, CachedCatalog(arguments).known().tools)
    names = (name for facts in known for name in (facts.name, *facts.other_names))
    return any(fits_pattern(name, pattern) for name in names)


def policy_unset(arguments: Namespace) -> int:
    """Take out what `policy_set` has written, and what `approve --always` has allowed."""
    config = config_of(arguments)
    path = config.directories.config / NAME
    rules = read_policy(path).rules
    strict = {rule.tools for rule in rules if rule.action is not Action.ALLOW}
    text = after = _text(path)
    removed: list[str] = []
    for tool in map(str, arguments.tools):
        facts, kept = _facts_if_known(arguments, tool), after
        if strict & {(name,) for name in (facts.name, *facts.other_names)}:
            _require_person(path)
        after = _without_rules(kept, facts)
        if approvals_of(config).ask_again(config.namespace, facts.name) or after != kept:
            removed.append(tool)
    if after != text:
        _record(config, f"unset {', '.join(removed)}")
        _write(path, after)
    return _report_unset(arguments, removed)


def _report_unset(arguments: Namespace, removed: list[str]) -> int:
    lines: list[str] = []
    if removed:
        lines.append(f"Removed: the other rules decide about {shown(', '.join(removed))} now.")
    if left := [each for each in arguments.tools if each not in removed]:
        named = shown(" or ".join(left))
        lines.append(f"There is no rule about {named} alone. `toolfold policy` lists the rules.")
    tell(arguments, "\n".join(lines), tools=list(arguments.tools), removed=removed)
    return int(bool(left))


def _facts_if_known(arguments: Namespace, name: str) -> ToolFacts:
    """Return what is known of a tool; of one that is not there any more, its name."""
    try:
        return facts_of(CachedCatalog(arguments).known().find(name))
    except NotFound:
        return ToolFacts(name, name.partition(".")[0])


def _without_rules(text: str, facts: ToolFacts) -> str:
    """Return a text without the rules about a tool alone, however they spell it."""
    for name in (facts.name, *facts.other_names):
        text = without_rule(text, name)
    return text


def _text(path: Path) -> str:
    return (read_file(path) or b"").decode()


def _write(path: Path, text: str) -> None:
    make_private(path.parent)
    replace_file(path.resolve(), text.encode())


def policy_import(arguments: Namespace) -> int:
    """Take over the client's rules, except those that stand in our file already."""
    config = load_config()
    found = translated(_imported(config), modules_of=partial(modules_of, config))
    path = config.directories.config / NAME
    new = _new(config, found.rules)
    if new and not arguments.dry_run:
        _record(config, f"import {', '.join(f'{action} {tools}' for action, tools in new)}")
        _take_over(config, path, new)
    if arguments.json:
        added = [{"action": action, "tools": tools} for action, tools in new]
        is_dry = bool(arguments.dry_run)
        print_json({"added": added, "left": found.left, "dry_run": is_dry, "file": str(path)})
        return 0
    for reason in found.left:
        print(f"Not imported: {shown(reason, max_chars=500)}.")
    if not new:
        others = "other " if found.left else ""
        print(f"There is nothing to import: all {others}rules of your client are here already.")
        return 0
    print(as_toml(new))
    if not arguments.dry_run:
        print(f"Added to {path}, after the other rules: the first that fits decides.")
    return 0


def _take_over(config: Config, path: Path, new: Sequence[RulePattern]) -> None:
    before = read_file(path) or b""
    left = [each for each in _imported(config) if _left_of(config, [each])]
    make_private(path.parent)
    replace_file(path.resolve(), b"\n".join(filter(None, (before, as_toml(new).encode()))))
    kept = json.dumps({"rules": left}).encode()  # the others are the user's from now on
    replace_file((path.parent / IMPORTED).resolve(), kept)


def _left_of(config: Config, kept: list[Json]) -> list[str]:
    """Return which rules of a client are not taken over, and why."""
    return translated(kept, modules_of=partial(modules_of, config)).left


def _is_left(config: Config) -> bool:
    """Whether a client had rules that allow, which are not in force."""
    found = translated(_imported(config), modules_of=partial(modules_of, config))
    return any(action == "allow" for action, _ in _new(config, found.rules))


def _new(config: Config, rules: Sequence[RulePattern]) -> list[RulePattern]:
    path = config.directories.config / NAME
    there = {(rule.action.name.lower(), rule.tools) for rule in read_policy(path).rules}
    return [each for each in rules if (each[0], (each[1],)) not in there]


def _imported(config: Config) -> list[Json]:
    return read_imported(config.directories.config / IMPORTED)
