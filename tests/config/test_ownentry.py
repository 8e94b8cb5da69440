"""Toolfold among the servers of a file."""

import pytest

from toolfold.config.entry import is_toolfold


@pytest.mark.parametrize(
    "line",
    [
        "toolfold mcp",
        "toolfold",
        "/home/ada/.local/bin/toolfold mcp",
        "C:\\Users\\ada\\toolfold.exe mcp",
        "python -m toolfold mcp",
        "/usr/bin/python3 -X utf8 -m toolfold mcp",
        "uv run python -m toolfold mcp",
        "uvx toolfold mcp",
        "uvx toolfold@latest mcp",
        "uvx toolfold==0.1.0 mcp",
        "uvx toolfold[pdf] mcp",
        "uvx --from git+https://example.org/x toolfold mcp",
        "uvx --quiet --python 3.12 toolfold mcp",
        "uv tool run toolfold mcp",
        "uv run --directory /src toolfold mcp",
        "pipx run toolfold mcp",
        "npx -y toolfold mcp",
        "npx -- toolfold",
    ],
)
def test_a_command_that_starts_toolfold_is_recognised(line: str) -> None:
    command, *args = line.split()

    assert is_toolfold(command, tuple(args))


@pytest.mark.parametrize(
    "line",
    [
        "",
        "uvx",
        "mcp-server-filesystem toolfold",
        "uvx mcp-server-filesystem toolfold",
        "uvx toolfold-extras",
        "uvx --from toolfold other-server",
        "python -m toolfold_extras",
        "python toolfold",
        "/opt/toolfold/server",
        "npx -y @modelcontextprotocol/server-memory",
    ],
)
def test_another_command_is_not_taken_for_toolfold(line: str) -> None:
    command, *args = line.split() or [""]

    assert not is_toolfold(command, tuple(args))
