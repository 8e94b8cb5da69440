from pathlib import Path

import pytest

from toolfold.errors import ConfigError
from toolfold.policy.files import read_policy


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ('[[policy]]\naction = "maybe"\n', ", rule 1: `action` must be allow, ask or deny"),
        ("[[polcy]]\n", ": 'polcy' is unknown; there are careful, [[policy]] and"),
        ("keys = 1\n", ": keys is a table of lists, [[keys.ID]]."),
        ('[[policy]]\naction = "deny"\nwhen = "a >"\n', ", rule 1: "),
        ("[[policy\n", ": "),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_understood_is_named_once(
    content: str, fault: str, tmp_path: Path
) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(content)

    with pytest.raises(ConfigError) as raised:
        read_policy(path)

    said = str(raised.value)
    assert said.startswith(f"{path}{fault}")
    assert said.count(str(path)) == 1
    assert ".." not in said.replace(str(path), "")
    assert "No tool is called until this is fixed" in said
