import pytest

from toolfold.errors import ConfigError
from toolfold.jsontypes import Json, JsonObject
from toolfold.policy.decide import Policy, Ruling, ToolFacts, decide, explain, is_always_denied
from toolfold.policy.rules import Action, careful, fits_pattern, read_rules

DELETE = ToolFacts("crm.delete_contact", "crm", read_only=False, destructive=True)
PLAIN = ToolFacts("crm.add_note", "crm")
READ = ToolFacts("crm.list_contacts", "crm", read_only=True, destructive=False, idempotent=True)
ALLOW, ASK, DENY = Action.ALLOW, Action.ASK, Action.DENY


def policy(*user: Json, project: Json = None) -> Policy:
    layers = (read_rules(project, origin="project"),) if project else ()
    return Policy(read_rules(list(user), origin="user"), layers)


@pytest.mark.parametrize(
    ("name", "pattern", "fits"),
    [
        ("github.create_issue", "github.*", True),
        ("github2.create_issue", "github.*", False),
        ("crm.delete_contact", "*.delete_*", True),
        ("crm.undelete", "*.delete_*", False),
        ("a.b", "a.b", True),
        ("a.bc", "a.b", False),
        ("ab", "a*b*", True),
        ("aba", "ab*ba", False),
        ("abba", "ab*ba", True),
        ("x" * 200, "*x*x*x*x*x*x*x*x*y", False),
        ("anything", "*", True),
    ],
)
def test_a_star_stands_for_any_characters(name: str, pattern: str, fits: bool) -> None:
    assert fits_pattern(name, pattern) is fits


@pytest.mark.parametrize(
    ("rules", "tool", "action"),
    [
        ([], DELETE, ASK),
        ([], PLAIN, ALLOW),
        ([], READ, ALLOW),
        ([{"action": "allow", "tools": "crm.*"}], DELETE, ALLOW),
        ([{"action": "deny", "tools": ["*.delete_*"]}], DELETE, DENY),
        ([{"action": "deny", "tools": ["*.delete_*"]}], PLAIN, ALLOW),
        ([{"action": "deny", "upstreams": "crm"}], PLAIN, DENY),
        ([{"action": "deny", "upstreams": "mail"}], PLAIN, ALLOW),
        ([{"action": "allow", "tools": "crm.*"}, {"action": "deny"}], PLAIN, ALLOW),
        ([{"action": "deny"}, {"action": "allow", "tools": "crm.*"}], PLAIN, DENY),
        ([{"action": "ask", "read_only": False}], PLAIN, ASK),
        ([{"action": "ask", "read_only": False}], READ, ALLOW),
        ([{"action": "ask", "idempotent": False}], PLAIN, ASK),
        ([{"action": "ask", "destructive": True}], PLAIN, ALLOW),
        ([{"action": "ask", "destructive": [True, "unknown"]}], PLAIN, ASK),
        ([{"action": "ask", "destructive": "unknown"}], READ, ALLOW),
        ([{"action": "allow", "read_only": True}, {"action": "deny"}], READ, ALLOW),
        ([{"action": "allow", "read_only": True}, {"action": "deny"}], PLAIN, DENY),
        ([{"action": "allow", "read_only": False}, {"action": "deny"}], PLAIN, DENY),
        ([{"action": "allow", "destructive": False}, {"action": "deny"}], PLAIN, DENY),
    ],
)
def test_the_first_rule_that_fits_decides(
    rules: list[Json], tool: ToolFacts, action: Action
) -> None:
    assert decide(policy(*rules), tool, {}).action is action


@pytest.mark.parametrize(
    ("rule", "arguments", "action"),
    [
        ({"action": "deny", "when": "amount > 100"}, {"amount": 150}, DENY),
        ({"action": "deny", "when": "amount > 100"}, {"amount": 50}, ALLOW),
        ({"action": "deny", "when": "amount > 100"}, {}, DENY),
        ({"action": "deny", "when": "amount > 100"}, {"amount": "150"}, DENY),
        ({"action": "ask", "when": "to not in ['a']"}, {"to": ["a", "b"]}, ASK),
    ],
)
def test_a_condition_that_cannot_be_told_counts_for_the_stricter(
    rule: Json, arguments: JsonObject, action: Action
) -> None:
    assert decide(policy(rule), PLAIN, arguments).action is action


def test_a_condition_that_cannot_be_told_allows_nothing() -> None:
    rules = policy({"action": "allow", "when": "amount <= 100"}, {"action": "deny"})

    assert decide(rules, PLAIN, {"amount": 5}).action is ALLOW
    assert decide(rules, PLAIN, {}).action is DENY


def test_a_count_begins_after_its_number() -> None:
    rules = policy({"action": "ask", "more_than": 20})

    assert [decide(rules, PLAIN, {}, count).action for count in (20, 21)] == [ALLOW, ASK]


@pytest.mark.parametrize("user", ["allow", "ask", "deny"])
@pytest.mark.parametrize("project", ["allow", "ask", "deny"])
def test_a_project_tightens_and_never_loosens(user: str, project: str) -> None:
    decided = decide(policy({"action": user}, project=[{"action": project}]), DELETE, {}).action

    assert decided is max(Action[user.upper()], Action[project.upper()])


def test_a_project_cannot_allow_what_is_asked_about_by_default() -> None:
    assert decide(policy(project=[{"action": "allow"}]), DELETE, {}).action is ASK


@pytest.mark.parametrize(
    ("rules", "is_denied"),
    [
        ([{"action": "deny", "tools": "crm.*"}], True),
        ([{"action": "deny", "when": "a > 1"}], False),
        ([{"action": "deny", "more_than": 3}], False),
        ([{"action": "deny", "when": "a > 1"}, {"action": "deny"}], True),
        ([{"action": "allow", "when": "a > 1"}, {"action": "deny"}], False),
        ([{"action": "deny", "tools": "mail.*"}], False),
    ],
)
def test_a_tool_is_hidden_only_if_no_call_of_it_can_be_allowed(
    rules: list[Json], is_denied: bool
) -> None:
    assert is_always_denied(policy(*rules), PLAIN) is is_denied
    assert is_always_denied(policy(project=rules), PLAIN) is is_denied


def test_the_reason_names_the_rule_and_where_it_stands() -> None:
    rules = policy(
        {"action": "allow", "tools": "mail.*"}, {"action": "deny", "when": "amount > 100"}
    )
    decision = decide(rules, PLAIN, {"amount": 150})

    assert decision.rule is rules.user[1]
    assert decision.why == (
        "by user, rule 2: deny every tool when amount > 100 (its condition holds)"
    )
    assert list(explain(rules, PLAIN, {"amount": 150})) == [
        "does not apply: user, rule 1: allow mail.* (names other tools)",
        "applies: user, rule 2: deny every tool when amount > 100 (its condition holds)",
        f"crm.add_note: deny, {decision.why}",
    ]


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ("deny", "list"),
        (["deny"], "rule 1 must be a table"),
        ([{"action": "deny"}, {"action": "maybe"}], "rule 2: `action`"),
        ([{}], "`action`"),
        ([{"action": "deny", "tool": "x"}], "'tool' is unknown"),
        ([{"action": "deny", "tools": []}], "between 1 and"),
        ([{"action": "deny", "tools": "a?b"}], "not a pattern"),
        ([{"action": "deny", "upstreams": [3]}], "not a pattern"),
        ([{"action": "deny", "read_only": "yes"}], "true, false"),
        ([{"action": "deny", "destructive": []}], "true, false"),
        ([{"action": "deny", "destructive": 1}], "true, false"),
        ([{"action": "deny", "when": 3}], "`when`"),
        ([{"action": "deny", "when": "a >"}], "rule 1: The condition"),
        ([{"action": "deny", "more_than": -1}], "`more_than`"),
        ([{"action": "deny", "more_than": True}], "`more_than`"),
        ([{"action": "deny"}] * 501, "at most"),
    ],
)
def test_a_rule_that_cannot_be_read_is_named_with_its_fault(rules: Json, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        read_rules(rules, origin="config.toml")


def test_of_two_that_ask_the_one_about_the_call_decides() -> None:
    """Who was asked about the tool has not seen what the call holds."""
    careful_layer = careful("ask", (), origin="policy.toml")
    policy = Policy(layers=(careful_layer,), is_careful=True)
    tool = ToolFacts("bank.pay", "bank", destructive=True)

    decision = Ruling(policy, tool).decide({"to": "x"}, tainted="`to` is not written")

    assert decision.action is Action.ASK
    assert decision.rule is careful_layer[-1]
    assert Ruling(policy, tool).decide({"to": "x"}).why == "its server marks it as destructive"
