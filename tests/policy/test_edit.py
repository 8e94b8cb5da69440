"""Rules about single tools, written into a file that a person also writes."""

import tomllib

from toolfold.policy.edit import with_rule, without_rule

FILE = """\
# My rules.
[[policy]]
action = "ask"      # careful
tools = "crm.*"
when = "args.id > 7"

[[policy]]
action = "allow"
tools = ["mail.send"]

[[keys.k1]]
action = "deny"
tools = "mail.*"
"""


def test_a_new_rule_comes_first_and_all_else_stays() -> None:
    text = with_rule(FILE, "deny", "crm.delete")

    assert tomllib.loads(text)["policy"][0] == {"action": "deny", "tools": "crm.delete"}
    assert text.replace('[[policy]]\naction = "deny"\ntools = "crm.delete"\n\n', "") == FILE


def test_a_rule_about_the_same_tool_is_replaced() -> None:
    once = with_rule(FILE, "deny", "mail.send")
    twice = with_rule(once, "ask", "mail.send")

    rules = tomllib.loads(twice)["policy"]
    assert [rule for rule in rules if "mail.send" in rule["tools"]] == [
        {"action": "ask", "tools": "mail.send"}
    ]


def test_only_plain_rules_about_the_tool_are_removed() -> None:
    assert without_rule(FILE, "crm.*") == FILE
    assert tomllib.loads(without_rule(FILE, "mail.send"))["policy"] == [
        {"action": "ask", "tools": "crm.*", "when": "args.id > 7"}
    ]
    assert "# My rules." in without_rule(FILE, "mail.send")


def test_an_empty_file_gets_the_rule() -> None:
    assert tomllib.loads(with_rule("", "allow", "a.b")) == {
        "policy": [{"action": "allow", "tools": "a.b"}]
    }
