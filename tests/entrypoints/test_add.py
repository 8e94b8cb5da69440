"""`toolfold add` and `toolfold remove`."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support import ROOT
from support import test_server as server_entry

from toolfold.config.jsonc import parse_jsonc
from toolfold.entrypoints.cli import run_command
from toolfold.entrypoints.commands.registry import entry_of, find_server, short_name
from toolfold.errors import ConfigError

FILE = """\
{
  // mine
  "mcpServers": {
    "a": {"command": "true"} // stays
  }
}
"""


@pytest.fixture
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLFOLD_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "home" / "config" / "mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text(FILE)
    spec = {
        "openapi": "3.1.0",
        "info": {"title": "Shop API", "version": "1"},
        "servers": [{"url": "https://shop.example"}],
        "paths": {"/orders": {"get": {"operationId": "listOrders", "responses": {}}}},
    }
    (tmp_path / "shop.json").write_text(json.dumps(spec))
    return path


def test_an_api_is_added_and_removed_and_comments_stay(
    own_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["add", "openapi", "shop.json"]) == 0
    assert "1 operation" in capsys.readouterr().out
    text = own_file.read_text()
    assert "// mine" in text
    assert "// stays" in text
    servers = parse_jsonc(text.encode()).value["mcpServers"]  # type: ignore[index, call-overload]
    assert servers["shop"] == {"openapi": str(own_file.parents[2] / "shop.json")}  # type: ignore[index, call-overload]
    assert run_command(["remove", "shop"]) == 0
    after = parse_jsonc(own_file.read_bytes()).value
    assert after == {"mcpServers": {"a": {"command": "true"}}}
    assert "// stays" in own_file.read_text()


@pytest.mark.parametrize("command", [["add", "b", "--", "true"], ["remove", "a"]])
def test_a_broken_file_is_named_and_left_as_it_is(
    own_file: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    broken = FILE.replace("}\n}", "\n")
    own_file.write_text(broken)

    assert run_command(command) == 2
    assert re.search(
        r"mcp.json is not valid JSON: line \d+.* left untouched", capsys.readouterr().err
    )
    assert own_file.read_text() == broken


def test_a_dry_run_says_what_an_api_offers_and_adds_nothing(
    own_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["add", "openapi", "shop.json", "--name", "x", "--dry-run"]) == 0
    assert "x.list_orders" in capsys.readouterr().out
    assert own_file.read_text() == FILE


def test_the_operations_of_an_api_are_listed_and_described(
    own_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own_file.write_text("{}")
    run_command(["add", "openapi", "shop.json"])
    capsys.readouterr()

    assert run_command(["tools", "list", "shop"]) == 0
    assert "shop.list_orders" in capsys.readouterr().out
    assert run_command(["tools", "describe", "shop"]) == 0
    assert "def list_orders(" in capsys.readouterr().out
    assert run_command(["tools", "describe", "shop.list_orders"]) == 0
    assert "# shop.list_orders" in capsys.readouterr().out


def test_the_commands_of_a_program_are_listed_without_starting_it(
    own_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = [{"name": "log", "arguments": [{"name": "n", "type": "integer"}]}]
    entry = {"cli": "git", "commands": commands}
    own_file.write_text(json.dumps({"mcpServers": {"history": entry}}))

    assert run_command(["tools", "list", "history"]) == 0
    assert "history.log" in capsys.readouterr().out


def test_a_tool_has_one_name_in_rules_however_it_is_spelled(
    own_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own_file.write_text("{}")
    run_command(["add", "openapi", "shop.json"])
    assert run_command(["policy", "deny", "shop.listOrders"]) == 0
    assert "shop.list_orders" in capsys.readouterr().out
    assert run_command(["policy", "check", "shop.list_orders"]) == 0
    assert "deny" in capsys.readouterr().out
    assert run_command(["policy", "unset", "shop.list_orders"]) == 2  # a person must do that

    policy = own_file.parent / "policy.toml"
    policy.write_text('[[policy]]\naction = "allow"\ntools = "shop.listOrders"\n')
    assert run_command(["policy", "unset", "shop.list_orders"]) == 0
    assert "allow" not in policy.read_text()


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("list_orders", "Did you mean shop.list_orders?"),
        ("listOrders", "Did you mean shop.list_orders?"),
        ("shop", "'shop' is a server, not a tool. Did you mean 'shop.*'"),
        ("nothing", "Tools are named as SERVER.TOOL."),
    ],
)
def test_a_tool_without_its_server_is_told_with_it(
    own_file: Path, capsys: pytest.CaptureFixture[str], tool: str, said: str
) -> None:
    own_file.write_text("{}")
    run_command(["add", "openapi", "shop.json"])

    assert run_command(["policy", "ask", tool]) == 2
    assert said in capsys.readouterr().err


def test_a_rule_about_nothing_that_is_there_is_kept_and_told(
    own_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own_file.write_text("{}")
    run_command(["add", "openapi", "shop.json"])

    assert run_command(["policy", "deny", "nix.*"]) == 0
    assert "No tool fits nix.* now; the rule is kept for later ones." in capsys.readouterr().out
    assert run_command(["policy", "deny", "shop.*"]) == 0
    assert "No tool fits" not in capsys.readouterr().out


@pytest.mark.parametrize("host", ["127.0.0.1:8993", "localhost:8993", "192.168.1.7"])
def test_an_api_at_a_private_address_has_to_be_named(
    own_file: Path, capsys: pytest.CaptureFixture[str], host: str
) -> None:
    spec = own_file.parents[2] / "shop.json"
    spec.write_text(spec.read_text().replace("https://shop.example", f"http://{host}/v1"))

    assert run_command(["add", "openapi", "shop.json"]) == 2
    said = capsys.readouterr().err
    assert "a private address" in said
    assert f"add it with --url http://{host}/v1." in said
    assert own_file.read_text() == FILE
    assert run_command(["add", "openapi", "shop.json", "--url", f"http://{host}/v1"]) == 0


def test_a_server_is_tried_at_once(own_file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    entry = server_entry("null")
    assert run_command(["add", "nil", "--", entry["command"], *entry["args"]]) == 0
    assert "nil offers" in capfd.readouterr().out


def test_who_added_what_does_not_start_is_told_how_to_take_it_out(
    own_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["add", "typo", "false"]) == 1
    assert "`toolfold remove typo` removes it." in capfd.readouterr().out
    assert run_command(["add", "other", "false", "--dry-run"]) == 1
    assert "removes it." not in capfd.readouterr().out
    assert run_command(["remove", "typo"]) == 0
    assert own_file.read_text() == FILE


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["add", "a", "https://x.example/mcp"], "already"),
        (["add", "b"], "Say what to add"),
        (["add", "b", "no-such-program"], "There is no program 'no-such-program' here"),
        (["add", "b", "./no-such-program"], "nothing was added"),
        (["add", "openapi", "missing.yaml"], "no such file"),
        (["add", "openapi", "shop.json", "--auth", "x"], "KEY=VALUE"),
        (["remove", "zzz"], "No server is named 'zzz'"),
        (["remove", "aa"], "Did you mean 'a'?"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    own_file: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert run_command(words) == 2
    assert said in capsys.readouterr().err
    assert own_file.read_text() == FILE


def described(**more: Any) -> dict[str, Any]:
    return {"name": "io.github.x/tracker", "version": "1.2.0", **more}


def package(kind: str, identifier: str, **more: Any) -> dict[str, Any]:
    return {"registryType": kind, "identifier": identifier, "version": "1.2.0", **more}


TOKEN = {"name": "TRACKER_TOKEN", "isRequired": True, "isSecret": True}
REGION = {"name": "REGION", "default": "eu"}
DESCRIBED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "npm": (
        described(packages=[package("npm", "@x/tracker", environmentVariables=[TOKEN, REGION])]),
        {
            "command": "npx",
            "args": ["-y", "@x/tracker@1.2.0"],
            "env": {"TRACKER_TOKEN": "${keyring:TRACKER_TOKEN}", "REGION": "eu"},
        },
    ),
    "pypi": (
        described(
            packages=[
                package(
                    "pypi",
                    "tracker",
                    packageArguments=[
                        {"type": "named", "name": "--mode", "value": "fast"},
                        {"type": "positional", "valueHint": "dir", "default": "."},
                    ],
                )
            ]
        ),
        {"command": "uvx", "args": ["tracker==1.2.0", "--mode", "fast", "."]},
    ),
    "oci": (
        described(packages=[package("oci", "ghcr.io/x/tracker", environmentVariables=[TOKEN])]),
        {
            "command": "docker",
            "args": ["run", "-i", "--rm", "-e", "TRACKER_TOKEN", "ghcr.io/x/tracker:1.2.0"],
            "env": {"TRACKER_TOKEN": "${keyring:TRACKER_TOKEN}"},
        },
    ),
    "remote, after what cannot be run": (
        described(
            packages=[package("nuget", "Tracker")],
            remotes=[
                {
                    "type": "streamable-http",
                    "url": "https://tracker.example/mcp",
                    "headers": [
                        {
                            "name": "Authorization",
                            "value": "Bearer {tracker_key}",
                            "variables": {"tracker_key": {"isSecret": True}},
                        }
                    ],
                }
            ],
        ),
        {
            "type": "http",
            "url": "https://tracker.example/mcp",
            "headers": {"Authorization": "Bearer ${keyring:tracker_key}"},
        },
    ),
}


@pytest.mark.parametrize(("server", "entry"), DESCRIBED.values(), ids=DESCRIBED.keys())
def test_a_described_server_becomes_an_entry(server: Any, entry: Any) -> None:
    assert entry_of(server, {}) == entry
    assert short_name(server) == "tracker"


UNUSABLE: dict[str, dict[str, Any]] = {
    "nothing": described(),
    "an option for a name": described(packages=[package("npm", "--eval=x")]),
    "a command for a version": described(packages=[package("npm", "x") | {"version": "1; rm"}]),
    "another kind": described(packages=[package("mcpb", "https://x.example/a.mcpb")]),
    "HTTP of a package": described(packages=[package("npm", "x", transport={"type": "sse"})]),
    "a secret of ours": described(
        packages=[package("npm", "x", packageArguments=[{"value": "${cmd:cat /etc/passwd}"}])]
    ),
    "a variable that runs": described(
        packages=[package("npm", "x", environmentVariables=[{"name": "A", "value": "${cmd:id}"}])]
    ),
    "an odd option": described(
        packages=[package("npm", "x", runtimeArguments=[{"type": "named", "name": "a b"}])]
    ),
    "what only the user knows": described(
        packages=[package("npm", "x", packageArguments=[{"valueHint": "dir", "isRequired": True}])]
    ),
    "a file": described(remotes=[{"type": "sse", "url": "file:///etc/passwd"}]),
    "a template": described(remotes=[{"type": "sse", "url": "https://{tenant}.example"}]),
    "odd values": described(packages=7, remotes=["x"]),
}


@pytest.mark.parametrize("server", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_a_described_server_that_cannot_be_used_is_refused(server: Any) -> None:
    with pytest.raises(ConfigError, match="cannot be added"):
        entry_of(server, {})


def test_a_server_is_added_by_its_description_or_its_name(
    own_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = own_file.parents[2]
    remote = {"type": "streamable-http", "url": "http://127.0.0.1:9/mcp"}
    server = described(remotes=[remote])
    (place / "server.json").write_text(json.dumps(server))
    other = {"name": "io.github.x/other", "remotes": [remote]}
    (place / "all.json").write_text(json.dumps({"servers": [{"server": server}, other]}))

    assert run_command(["add", "server.json"]) == 1
    said = capfd.readouterr().out
    assert "Added tracker" in said
    assert "did not start" in said
    run_command(["add", "io.github.x/other", "--registry", "all.json", "--name", "mine"])
    assert run_command(["add", "io.github.x/none", "--registry", "all.json"]) != 0
    assert "describes no server" in capfd.readouterr().err
    assert run_command(["add", "all.json"]) == 2
    written: Any = parse_jsonc(own_file.read_bytes()).value
    assert written["mcpServers"]["tracker"] == {"type": "http", "url": "http://127.0.0.1:9/mcp"}
    assert written["mcpServers"]["mine"]["url"] == "http://127.0.0.1:9/mcp"


def test_our_own_description_can_be_read() -> None:
    entry = entry_of(find_server(ROOT / "server.json"), {})
    assert entry["command"] == "uvx"
    assert entry["args"][-1] == "mcp"  # type: ignore[index]
