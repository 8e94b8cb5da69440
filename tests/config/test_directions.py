"""A project may tighten, never loosen: every setting says which direction is the tighter one."""

import math
from pathlib import Path

import pytest

from toolfold.config.layers import ZONE, Setting, SettingKey, Value, dotted, tighten
from toolfold.config.settings import settings_schema

DOCS = Path(__file__).parents[2] / "docs" / "policy.md"
SCHEMA = settings_schema()
SETTINGS: dict[SettingKey, Setting] = {
    **SCHEMA.settings,
    **{("servers", "NAME", name): each for name, each in SCHEMA.server_options.items()},
}


def values(setting: Setting) -> list[Value]:
    """Return values that a setting may have, from the loosest on."""
    if setting.kind is ZONE:
        return ["Europe/Zurich"]
    tried: list[object] = [1, 5, 0.5, True, False, "on", "off", "shared", "session", [], ["a"]]
    tried += ["refuse", "continue", "auto", "always", "never", "text", {"a": "b"}]
    taken = [taken for each in tried if (taken := setting.kind.take(each)) is not None]
    return sorted(taken, key=setting.kind.strictness)


def row(key: SettingKey) -> str:
    """Return the row of a setting in the table of directions."""
    table = DOCS.read_text().partition("## What a project may say")[2]
    name = f"| `{dotted(key)}` "
    return next((line for line in table.splitlines() if line.startswith(name)), "")


@pytest.mark.parametrize("key", SETTINGS, ids=dotted)
def test_a_project_goes_only_in_the_direction_that_the_table_says(key: SettingKey) -> None:
    setting = SETTINGS[key]
    kind = setting.kind
    if not kind.tighter:  # it has no say
        found = values(setting)
        assert all(math.isnan(kind.strictness(each)) for each in found)
        assert all(tighten({}, {key: each}, SCHEMA).values == {} for each in found)
        assert row(key) == f"| `{dotted(key)}` | nothing |"
        return
    loosest, *_, tightest = values(setting)
    assert kind.strictness(loosest) < kind.strictness(tightest)
    assert tighten({key: loosest}, {key: tightest}, SCHEMA).values == {key: tightest}
    assert tighten({key: tightest}, {key: loosest}, SCHEMA).values == {key: tightest}
    assert row(key) == f"| `{dotted(key)}` | {kind.tighter} |"
