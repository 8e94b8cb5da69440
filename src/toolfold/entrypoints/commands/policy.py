"""`toolfold policy`: which rules hold, and which decides."""

import json
from argparse import Namespace
from pathlib import Path

from toolfold.config.config import Config, load_config
from toolfold.config.faults import shown
from toolfold.config.files import read_file
from toolfold.entrypoints.commands.options import config_of
from toolfold.entrypoints.commands.tools import Shelf
from toolfold.errors import ConfigError, NotFound
from toolfold.execution.approvals import approvals_of
from toolfold.execution.guarding import facts_of
from toolfold.jsontypes import Json
from toolfold.policy.decide import ToolFacts, explain
from toolfold.policy.files import PolicyFiles, read_policy
from toolfold.policy.imported import as_toml, translated
from toolfold.policy.rules import BUILTIN


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
    for tool in approvals_of(config).always_allowed(config.namespace):
        print(f"always allowed here: {shown(tool)} (`toolfold policy ask {shown(tool)}` ends that)")
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
    policy = PolicyFiles(config).policy(f"key:{arguments.key}" if arguments.key else "")
    for line in explain(policy, _facts(arguments), given, arguments.count):
        print(shown(line))
    if approvals_of(config).is_always_allowed(config.namespace, arguments.tool):
        print("You have said that this tool is always allowed here: you are not asked.")
    return 0


def _facts(arguments: Namespace) -> ToolFacts:
    """Return what is known of a tool from what its server listed last."""
    name = str(arguments.tool)
    try:
        return facts_of(Shelf(arguments).known().find(name))
    except NotFound:
        print(f"{shown(name)} is not known here; only rules about names can be told.")
        return ToolFacts(name, name.partition(".")[0])


def policy_import(arguments: Namespace) -> int:
    """Take over the client's rules."""
    config = load_config()
    rules = translated(_imported(config))
    text = as_toml(rules)
    if not text:
        print("No rules of a client were kept when installing.")
        return 0
    print(text)
    if arguments.dry_run:
        return 0
    path = config.directories.config / "policy.toml"
    before = read_file(path)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes((before or b"") + b"\n" + text.encode())
    read_policy(path)
    print(f"Written to {path}.")
    return 0


def policy_ask(arguments: Namespace) -> int:
    """Ask about a tool again."""
    config = load_config()
    approvals_of(config).ask_again(config.namespace, arguments.tool)
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
