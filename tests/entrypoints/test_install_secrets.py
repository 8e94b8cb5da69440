"""What install prints: the change, and no secret wherever it stands."""

import json

import pytest
from machine import Machine

SECRET = "s3cr3t-Hidden"

ENTRIES = {
    "a header in the arguments": {"args": ["--header", f"Authorization: Bearer {SECRET}"]},
    "a variable in the arguments": {"args": ["-e", f"GITHUB_PERSONAL_ACCESS_TOKEN={SECRET}"]},
    "a line for a shell": {"args": ["-c", f"API_KEY={SECRET} exec srv --password '{SECRET}'"]},
    "behind an unknown flag": {"args": ["--pat", SECRET]},
    "joined to a flag": {"args": [f"--pat={SECRET}", f"-p{SECRET}", f"--{SECRET}"]},
    "a default": {"env": {"TOKEN": f"${{X:-{SECRET}}}"}},
    "a number": {"args": ["--pin", 90210], "env": {"PIN": 90210}},
    "before the command": {"command": f"TOKEN={SECRET} srv"},
    "in the path of the command": {"command": f"TOKEN=a/{SECRET}"},
    "under a key that nobody knows": {"custom": {"deep": [[{"x": SECRET}]]}},
    "the user of a URL": {"url": f"https://{SECRET}@example.org/mcp"},
    "the user of an odd URL": {"url": f"https://{SECRET}/x@example.org/mcp"},
    "the path of a URL": {"url": f"https://example.org/s/{SECRET}/mcp"},
    "the query of a URL": {"url": f"https://example.org/mcp?x={SECRET}#{SECRET}"},
    "a default in a URL": {"url": f"https://${{HOST:-{SECRET}}}/mcp"},
    "a header": {"url": "https://example.org/mcp", "headers": {"X-Odd": SECRET}},
}


def toml_of(entry: dict[str, object]) -> str:
    lines = [f"{key} = {toml_value(value)}" for key, value in entry.items()]
    return "[mcp_servers.it]\n" + "\n".join(lines) + "\n"


def toml_value(value: object) -> str:
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)} = {toml_value(inner)}" for key, inner in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list):
        return "[\n" + "".join(f"  {toml_value(inner)}, # {SECRET}\n" for inner in value) + "]"
    return json.dumps(value)


@pytest.mark.parametrize("client", ["claude", "codex"])
@pytest.mark.parametrize("kind", ENTRIES)
def test_a_dry_run_shows_no_secret(machine: Machine, kind: str, client: str) -> None:
    entry = ENTRIES[kind]
    entry = entry if "url" in entry else {"command": "srv", **entry}
    root = {"primaryApiKey": SECRET, "mcpServers": {"it": entry}, "history": [SECRET]}
    text = toml_of(entry) if client == "codex" else json.dumps(root, indent=2)
    machine.write(client, text)

    ran = machine.run("install", client, "--dry-run")

    assert ran.status == 0
    assert "This was a dry run" in ran.out
    assert SECRET not in ran.out
    assert "90210" not in ran.out
    assert "90210" not in machine.run("install", client).out
    assert SECRET not in machine.run("uninstall", client, "--dry-run").out


def test_neither_comments_nor_odd_spelling_show_a_secret(machine: Machine) -> None:
    machine.write(
        "cursor",
        '{"mcpServers": {\n'
        f'  // "old": {{"env": {{"TOKEN": "{SECRET}"}}}}\n'
        f'  "it": {{"command": "srv", "args": ["--api-key", /* {SECRET}\n {SECRET} */\n'
        f'    "{SECRET}"], "\\u0065nv": {{"A": "{SECRET}"}}}},\n'
        "}}",
    )
    machine.write(
        "codex",
        f"# {SECRET}\n"
        f"[mcp_servers.it] # {SECRET}\n"
        'command = "srv"\n'
        f"args = [\"--api-key\",\n \"{SECRET}\", '''{SECRET}\n{SECRET}''']\n"
        f'"env" = {{ A = "{SECRET}", "B" = \'{SECRET}\' }}\n'
        f'http_headers."X.Y" = """{SECRET}"""\n'
        f"[mcp_servers.it.oauth]\nclientId = '{SECRET}'\n",
    )

    ran = machine.run("install", "cursor", "codex", "--dry-run")

    assert ran.status == 0
    assert "-[mcp_servers.it]" in ran.out
    assert SECRET not in ran.out


def test_a_dry_run_shows_what_is_no_secret(machine: Machine) -> None:
    entry = {
        "type": "stdio",
        "command": "/opt/bin/npx",
        "args": ["-y", "@scope/server-github@1.2.3", "mcp-server-fetch", "--key=x", "${HERE}"],
        "env": {"TOKEN": "${env:TOKEN}", "HOST": "${HOST:-github.com}"},
        "disabled": False,
        "timeout": 60000,
    }
    remote = {"url": "https://example.org:8443/v1/mcp", "headers": {"Authorization": "Bearer ${T}"}}
    hook = {"url": "https://example.org/s/x/mcp"}
    servers = {"mcpServers": {"it": entry, "remote": remote, "hook": hook}}
    machine.write("cursor", json.dumps(servers, indent=2))

    out = machine.run("install", "cursor", "--dry-run").out

    for line in (
        '"type": "stdio"',
        '"command": "/opt/bin/npx"',
        '"-y"',
        '"@scope/server-github@1.2.3"',
        '"mcp-server-fetch"',
        '"--key=•••"',
        '"${HERE}"',
        '"TOKEN": "${env:TOKEN}"',
        '"HOST": "${HOST:-•••}"',
        '"disabled": false',
        '"timeout": 60000',
        '"url": "https://example.org:8443/v1/mcp"',
        '"Authorization": "Bearer ${T}"',
        '"url": "https://example.org/•••"',
        '+        "mcp"',
    ):
        assert line in out
