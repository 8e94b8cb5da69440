"""`toolfold init`: files to begin with."""

import pytest
from machine import Machine

from toolfold.config.config import load_config


@pytest.mark.parametrize("scope", [(), ("--project",)])
def test_init_writes_files_that_work_and_never_overwrites(
    machine: Machine, scope: tuple[str, ...]
) -> None:
    folder = machine.project / ".toolfold" if scope else machine.servers_file.parent
    first = machine.run("init", *scope)
    config = load_config()
    (folder / "mcp.json").write_text('{"mcpServers": {"mine": {"command": "x"}}}')
    second = machine.run("init", *scope)

    assert first.status == second.status == 0
    assert config.faults == ()
    assert folder / "config.toml" in config.sources
    assert set(machine.servers(folder / "mcp.json")) == {"mine"}
    assert second.out.count("exists already; unchanged.") == 2


def test_every_setting_in_the_starter_stands_at_its_default(machine: Machine) -> None:
    machine.run("init")
    path = machine.servers_file.parent / "config.toml"
    defaults = load_config().settings
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line.removeprefix("# ") for line in lines[1:]))

    config = load_config()

    assert config.faults == ()
    assert config.settings == defaults
    assert "calls = 10000" in path.read_text()
    assert 'mode = "off"  # or "on"' in path.read_text()
    assert 'patterns = {}  # such as {NAME = "Ada Lovelace"}' in path.read_text()
