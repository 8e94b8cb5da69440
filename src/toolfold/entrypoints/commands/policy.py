"""`toolfold policy`: which rules hold, and which decides."""

import json
import re
from argparse import Namespace
from functools import partial
from pathlib import Path

from toolfold.catalog.names import module_names
from toolfold.config.config import Config, load_config
from toolfold.config.faults import shown
from toolfold.entrypoints.commands.options import config_of
from toolfold.entrypoints.commands.tools import CachedCatalog
from toolfold.errors import ConfigError, NotFound
from toolfold.execution.trust.approvals import approvals_of, scope_of
from toolfold.execution.trust.guard import facts_of
from toolfold.jsontypes import Json
from toolfold.policy.decide import ToolFacts, explain
from toolfold.policy.files import NAME, PolicyFiles, read_policy
from toolfold.policy.imported import as_toml, translated
from toolfold.policy.rules import BUILTIN
from toolfold.storage.files import make_private, read_file, replace_file


def policy_show(_arguments: Namespace) -> int:
    """Print all rules that hold here, in their order."""
    config = load_config()
    for path in PolicyFiles(config).paths:
        file = read_policy(path)
        for rule in file.rules:
            print(shown(str(rule)))
        for key, rules in file.keys.items():
            for rule in rules:
                print(f"key {shown(key)}: {shown(str(rule))}")
    for rule in BUILTIN:
        print(shown(str(rule)))
    for scope, tool in approvals_of(config).always_allowed(config.namespace):
        whose = scope.removeprefix(config.namespace).replace(" key:", " for the key ")
        print(
            f"always allowed here{shown(whose)}: {shown(tool)} (`toolfold policy ask "
            f"{shown(tool)}` ends that)"
        )
    if _imported(config):
        print("Your client's own rules were kept when installing: `toolfold policy import`.")
    return 0


def policy_check(arguments: Namespace) -> int:
    """Say which rule decides about a tool, and why."""
    config = config_of(arguments)
    try:
        given = json.loads(arguments.arguments)
    except ValueError as error:
        raise ConfigError(f"The arguments are no JSON: {error}.") from error
    if not isinstance(given, dict):
        raise ConfigError("The arguments are a JSON object.")
    client = f"key:{arguments.key}" if arguments.key else ""
    policy = PolicyFiles(config).policy(client)
    for line in explain(policy, _facts(arguments), given, arguments.count):
        print(shown(line))
    scope = scope_of(config.namespace, client)
    if approvals_of(config).is_always_allowed(scope, arguments.tool):
        print("You have said that this tool is always allowed here: you are not asked.")
    return 0


def _facts(arguments: Namespace) -> ToolFacts:
    """Return what is known of a tool from what its server listed last."""
    name = str(arguments.tool)
    try:
        return facts_of(CachedCatalog(arguments).known().find(name))
    except NotFound:
        print(f"{shown(name)} is not known here; only rules about names can be told.")
        return ToolFacts(name, name.partition(".")[0])


def policy_import(arguments: Namespace) -> int:
    """Take over the client's rules, except those that stand in our file already."""
    config = load_config()
    found = translated(_imported(config), modules_of=partial(_modules_of, config))
    path = config.directories.config / NAME
    there = {(rule.action.name.lower(), rule.tools) for rule in read_policy(path).rules}
    new = [each for each in found.rules if (each[0], (each[1],)) not in there]
    for reason in found.left:
        print(f"Not taken over: {shown(reason, max_chars=500)}.")
    if not new:
        print("There are no rules of a client to take over that were not already.")
        return 0
    print(as_toml(new))
    if not arguments.dry_run:
        before = read_file(path) or b""
        make_private(path.parent)
        replace_file(path.resolve(), b"\n".join(filter(None, (before, as_toml(new).encode()))))
        print(f"Written to {path}, after the rules that stand there: the first that fits decides.")
    return 0


def _modules_of(config: Config, server: str) -> list[str]:
    """Return the modules that may be a server of a client: `crm`, and `crm_2` if it was taken."""
    module = module_names([server])[server]
    modules = module_names(each.name for each in config.servers).values()
    renamed = re.compile(rf"{re.escape(module)}_[0-9]+")
    return [module, *filter(renamed.fullmatch, modules)]


def policy_ask(arguments: Namespace) -> int:
    """Ask about a tool again."""
    config = load_config()
    if not approvals_of(config).ask_again(config.namespace, arguments.tool):
        print(f"{shown(arguments.tool)} was not always allowed here: rules decide about it.")
        return 1
    print(f"Rules decide about {shown(arguments.tool)} again.")
    return 0


def _imported(config: Config) -> Json:
    path: Path = config.directories.config / "imported-rules.json"
    content = read_file(path)
    try:
        kept: Json = json.loads(content) if content else None
    except ValueError as error:
        raise ConfigError(f"{path} is no JSON: {error}.") from error
    return kept.get("rules") if isinstance(kept, dict) else None
