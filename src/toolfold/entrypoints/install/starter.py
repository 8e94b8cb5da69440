"""The configuration files that `toolfold init` writes."""

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

from toolfold.config.layers import Pairs
from toolfold.config.settings import Settings
from toolfold.entrypoints.install.files import Files

_SERVERS = """\
{
  // Each server here is a module in the agent's code: `import github`. The entries are those of
  // other MCP clients, and `toolfold install` brings yours here.
  "mcpServers": {
    // "github": {
    //   "command": "npx",
    //   "args": ["-y", "@modelcontextprotocol/server-github"],
    //   "env": { "GITHUB_PERSONAL_ACCESS_TOKEN": "${GITHUB_PERSONAL_ACCESS_TOKEN}" }
    // },
    // "search": { "type": "http", "url": "https://example.org/mcp" }
  }
}
"""
_ABOUT_TABLES = {
    "limits": "of one run",
    "hooks": "of coding agents",
    "privacy": "personal data",
    "audit": "the audit log",
    "keys": "limits of each API key",
    "telemetry": "OpenTelemetry",
}
_EXAMPLES = {
    ("privacy", "mode"): 'or "on"',
    ("privacy", "fields"): (
        'such as {"customer.name" = "NAME"}; "name" alone would conceal every key `name`'
    ),
    ("privacy", "patterns"): (
        'such as {NAME = "Ada Lovelace"}: a regular expression for each kind'
    ),
}
_PAIRS = {Pairs, "Pairs"}
_PREFACE = """\
# Settings of toolfold. A line that is commented out shows the default.
"""


def write_starters(folder: Path, files: Files) -> Iterator[tuple[Path, bool]]:
    """Write the files that are not there; yield each with whether it was written.

    Raises:
        ConfigError: One of them cannot be written.
    """
    for name, text in (("mcp.json", _SERVERS), ("config.toml", settings_text())):
        path = folder / name
        is_new = files.read(path) is None
        if is_new:
            files.write(path, text, was=None, private=True)
        yield path, is_new


def settings_text() -> str:
    """Return a `config.toml` that names every setting with its default, as a comment."""
    defaults = {each.name: getattr(Settings(), each.name) for each in fields(Settings)}
    del defaults["servers"]
    tables = {name: value for name, value in defaults.items() if is_dataclass(value)}
    top = {name: value for name, value in defaults.items() if name not in tables}
    lines = [_PREFACE, *(_line(name, value) for name, value in top.items())]
    for name, table in tables.items():
        about = _ABOUT_TABLES.get(name)
        lines += ["", f"# [{name}]" + (f"  # {about}" if about else "")]
        for each in fields(table):
            value = getattr(table, each.name)
            line = _line(each.name, dict(value) if each.type in _PAIRS else value)
            example = _EXAMPLES.get((name, each.name))
            lines.append(f"{line}  # {example}" if example else line)
    return "\n".join(lines) + "\n"


def _line(name: str, value: object) -> str:
    return f"# {name} = {json.dumps(list(value) if isinstance(value, tuple) else value)}"
