"""`toolfold policy`: which rules there are, which decides, and rules about single tools."""

import json
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
from toolfold.jsontypes import Json, JsonObject
from toolfold.policy.decide import ToolFacts, decide, explain
from toolfold.policy.edit import with_rule, without_rule
from toolfold.policy.files import IMPORTED, NAME, read_imported, read_policy
from toolfold.policy.imported import RulePattern, as_toml, translated
from toolfold.policy.rules import fits_pattern
from toolfold.storage.files import make_private, read_file, replace_file

_COLUMNS = (Column("ACTION"), Column("TOOLS", is_wide=True), Column("RULE", is_wide=True))
_APPROVALS = {
    "auto": "the built-in rule asks where a local client can ask; HTTP and keys always ask.",
    "always": "the built-in rule always asks, and the run waits where nobody can be asked.",
    "never": "the built-in rule asks nobody; your own rules hold.",
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
            print(f"Does not hold, write it into {NAME}: {shown(reason, max_chars=500)}.")
    if _is_left(config):
        print("Rules of your client that allow do not hold: `toolfold policy import` adds them.")
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
    facts = _facts(arguments)
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


def _facts(arguments: Namespace) -> ToolFacts:
    """Return what is known of a tool from what its server listed last.

    Raises:
        NotFound: Its server is known, or there is none of that name, and it has no such tool.
    """
    name = str(arguments.tool)
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
    """Write a rule about a tool into the user's file, before all others."""
    config = config_of(arguments)
    tool, action = str(arguments.tool), str(arguments.verb)
    path = config.directories.config / NAME
    read_policy(path)
    text = _text(path)
    if "*" not in tool:
        facts = _facts(arguments)
        tool = facts.name
        text = _without_rules(text, facts)
    _write(path, with_rule(text, action, tool))
    if action != "allow":
        approvals_of(config).ask_again(config.namespace, tool)
    if arguments.json:
        print_json({"tool": tool, "action": action, "file": str(path)})
        return 0
    words = {
        "allow": "is called without asking",
        "deny": "is never called",
        "ask": "needs approval",
    }
    print_line(_action(action), f" {shown(tool)}: it {words[action]} from now on ({path}).")
    if "*" in tool and not _fits_any(arguments, tool):
        print(f"No tool fits {shown(tool)} now; the rule is kept for later ones.")
    return 0


def _fits_any(arguments: Namespace, pattern: str) -> bool:
    known = map(facts_of, CachedCatalog(arguments).known().tools)
    names = (name for facts in known for name in (facts.name, *facts.other_names))
    return any(fits_pattern(name, pattern) for name in names)


def policy_unset(arguments: Namespace) -> int:
    """Take out what `policy_set` has written, and what `approve --always` has allowed."""
    config = config_of(arguments)
    tool, path = str(arguments.tool), config.directories.config / NAME
    read_policy(path)
    before = _text(path)
    facts = _facts_if_known(arguments)
    after = _without_rules(before, facts)
    was_allowed = approvals_of(config).ask_again(config.namespace, facts.name)
    if after == before and not was_allowed:
        sentence = f"There is no rule about {shown(tool)} alone. `toolfold policy` lists the rules."
        tell(arguments, sentence, tool=tool, removed=False)
        return 1
    if after != before:
        _write(path, after)
    sentence = f"Removed: the other rules decide about {shown(tool)} now."
    tell(arguments, sentence, tool=tool, removed=True)
    return 0


def _facts_if_known(arguments: Namespace) -> ToolFacts:
    """Return what is known of a tool; of one that is not there any more, its name."""
    name = str(arguments.tool)
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
