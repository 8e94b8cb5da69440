"""`toolfold policy`: which rules there are, which decides, and rules about single tools."""

import json
import re
from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from toolfold.config.config import Config, load_config
from toolfold.config.faults import shown
from toolfold.entrypoints.commands.options import config_of
from toolfold.entrypoints.commands.tools import CachedCatalog
from toolfold.entrypoints.screen import Cell, Column, print_json, print_line, print_table
from toolfold.errors import ConfigError, NotFound
from toolfold.execution.trust.approvals import approvals_of, scope_of
from toolfold.execution.trust.asked_clients import CLIENTS_FILE, AskedClients
from toolfold.execution.trust.client_rules import modules_of, policy_files
from toolfold.execution.trust.guard import facts_of
from toolfold.jsontypes import Json, JsonObject
from toolfold.policy.decide import ToolFacts, decide, explain
from toolfold.policy.edit import with_rule, without_rule
from toolfold.policy.files import IMPORTED, NAME, read_imported, read_policy
from toolfold.policy.imported import RulePattern, as_toml, translated
from toolfold.policy.rules import BUILTIN, Rule
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
    found = list(_rules(config))
    if arguments.json:
        print_json(
            [{"action": action, "rule": rule, "from": source} for action, rule, source in found]
        )
        return 0
    print_table(_COLUMNS, [(_action(each[0]), shown(each[1]), shown(each[2])) for each in found])
    print(f'approvals = "{config.settings.approvals}": {_APPROVALS[config.settings.approvals]}')
    names = AskedClients(config.directories.state / CLIENTS_FILE).names()
    if names:
        print(f"These clients refuse questions by themselves: {shown(', '.join(names))}.")
    if _is_left(config):
        print("Rules of your client that allow do not hold: `toolfold policy import` adds them.")
    return 0


def _rules(config: Config) -> Iterator[tuple[str, str, str]]:
    """Yield the action, what it is about, and where it stands."""
    for scope, tool in approvals_of(config).always_allowed(config.namespace):
        key = scope.removeprefix(config.namespace).replace(" key:", " for the key ")
        yield "allow", tool, f"always, as you said{key}"
    files = policy_files(config)
    for path in files.paths:
        file = read_policy(path)
        yield from map(_parts, file.rules)
        for key, rules in file.keys.items():
            for action, what, source in map(_parts, rules):
                yield action, f"{what} (key {key})", source
    yield from map(_parts, files.client_rules())
    yield from map(_parts, BUILTIN)


def _parts(rule: Rule) -> tuple[str, str, str]:
    action = rule.action.name.lower()
    text = str(rule).removeprefix(f"{rule.origin}: ").removeprefix(f"{action} ")
    text = re.sub(r"that is (\w+): yes", r"marked \1 by its server", text)
    return action, text, rule.origin


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
    is_allowed = approvals_of(config).is_always_allowed(scope, arguments.tool)
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
    if "*" not in tool:
        _facts(arguments)
    path = config.directories.config / NAME
    read_policy(path)
    _write(path, with_rule(_text(path), action, tool))
    if action != "allow":
        approvals_of(config).ask_again(config.namespace, tool)
    words = {
        "allow": "is called without asking",
        "deny": "is never called",
        "ask": "needs approval",
    }
    print_line(_action(action), f" {shown(tool)}: it {words[action]} from now on ({path}).")
    return 0


def policy_unset(arguments: Namespace) -> int:
    """Take out what `policy_set` has written, and what `approve --always` has allowed."""
    config = config_of(arguments)
    tool, path = str(arguments.tool), config.directories.config / NAME
    read_policy(path)
    before = _text(path)
    after = without_rule(before, tool)
    was_allowed = approvals_of(config).ask_again(config.namespace, tool)
    if after == before and not was_allowed:
        print(f"There is no rule about {shown(tool)} alone. `toolfold policy` lists the rules.")
        return 1
    if after != before:
        _write(path, after)
    print(f"Removed: the other rules decide about {shown(tool)} now.")
    return 0


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
    for reason in found.left:
        print(f"Not imported: {shown(reason, max_chars=500)}.")
    if not new:
        print("There is nothing to import: all rules of your client are here already.")
        return 0
    print(as_toml(new))
    if not arguments.dry_run:
        before = read_file(path) or b""
        make_private(path.parent)
        replace_file(path.resolve(), b"\n".join(filter(None, (before, as_toml(new).encode()))))
        kept = json.dumps({"rules": []}).encode()
        replace_file((path.parent / IMPORTED).resolve(), kept)  # from now on they are the user's
        print(f"Added to {path}, after the other rules: the first that fits decides.")
    return 0


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
