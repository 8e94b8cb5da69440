"""Rules of a client become rules of ours: what was closed stays closed, nothing is opened."""

from typing import Any

import pytest

from toolfold.catalog.names import module_names
from toolfold.catalog.tool import ListedTool, Tool
from toolfold.execution.trust.guard import facts_of
from toolfold.policy.decide import Policy, decide
from toolfold.policy.imported import as_toml, translated
from toolfold.policy.rules import Action, read_rules


def module_of(server: str) -> str:
    return module_names([server])[server]


def taken_over(*rules: dict[str, str]) -> Any:
    kept: Any = list(rules)
    return translated(kept, modules_of=lambda server: [module_of(server)])


def rule(action: str, text: str, scope: str = "user") -> dict[str, str]:
    return {"source": "settings.json", "scope": scope, "list": action, "rule": text}


def facts(server: str, name: str, function: str) -> Any:
    listed = ListedTool(name=name, input_schema={})
    tool = Tool(server=server, module=module_of(server), function=function, listed=listed)
    return facts_of(tool)


@pytest.mark.parametrize(
    ("text", "server", "name", "function"),
    [
        ("mcp__crm__delete_contact", "crm", "delete_contact", "delete_contact"),
        ("mcp__crm__delete-contact", "crm", "delete-contact", "delete_contact"),
        ("mcp__crm__deleteContact", "crm", "deleteContact", "delete_contact"),
        ("mcp__my-Server__x", "my-Server", "x", "x"),
        ("mcp__time__now", "time", "now", "now"),
        ("mcp__1password__get", "1password", "get", "get"),
        ("mcp__my_server__x", "my server", "x", "x"),
        ("mcp__crm", "crm", "anything", "anything"),
        ("mcp__crm__*", "crm", "anything", "anything"),
        ("mcp__crm__get*", "crm", "getAll", "get_all"),
        ("mcp__*", "crm", "anything", "anything"),
        ("mcp__crm__pay(amount:5)", "crm", "pay", "pay"),
        ("mcp__a__b__c", "a__b", "c", "c"),
        ("mcp__a__b__c", "a", "b__c", "b_c"),
    ],
)
@pytest.mark.parametrize("scope", ["user", "project"])
def test_what_was_denied_is_denied(
    text: str, server: str, name: str, function: str, scope: str
) -> None:
    found = taken_over(rule("deny", text, scope))
    rules = read_rules(
        [{"action": action, "tools": pattern} for action, pattern in found.rules], origin="taken"
    )

    decided = decide(Policy(rules), facts(server, name, function), {})
    assert decided.action is Action.DENY
    assert found.left == []


@pytest.mark.parametrize(
    ("taken", "why"),
    [
        (rule("allow", "mcp__bank__pay", "project"), "would apply everywhere"),
        (rule("allow", "mcp__bank__pay(to:me)"), "only some calls"),
        (rule("allow", "mcp__bank__pay", ""), "would apply everywhere"),
        (rule("deny", "mcp__a b__c"), "not a rule"),
        (rule("deny", "Bash(rm:*)"), "not a rule"),
        (rule("maybe", "mcp__bank__pay"), "not a rule"),
    ],
)
def test_what_is_not_taken_over_is_said(taken: dict[str, str], why: str) -> None:
    found = taken_over(taken)

    assert found.rules == []
    assert why in found.left[0]


def test_what_denies_comes_first_and_each_rule_once() -> None:
    found = taken_over(
        rule("allow", "mcp__crm__get"), rule("deny", "mcp__crm__put"), rule("deny", "mcp__crm__put")
    )

    assert found.rules == [("deny", "crm.put"), ("allow", "crm.get")]
    assert as_toml(found.rules[:1]) == '[[policy]]\naction = "deny"\ntools = "crm.put"\n'


def test_a_server_whose_name_was_taken_stays_closed_under_its_new_one() -> None:
    kept: Any = [rule("deny", "mcp__crm__put"), rule("allow", "mcp__crm__get")]
    found = translated(kept, modules_of=lambda server: [server, f"{server}_2"])

    assert found.rules == [("deny", "crm.put"), ("deny", "crm_2.put")]
    assert found.left == ["allow mcp__crm__get: it may mean crm.get or crm_2.get"]


@pytest.mark.parametrize("kept", [None, "x", 3, {}, [3], ["x"], [{}]])
def test_what_is_no_list_of_rules_opens_nothing(kept: Any) -> None:
    assert translated(kept, modules_of=lambda server: [module_of(server)]).rules == []
