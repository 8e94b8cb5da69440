import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import python, test_server, write_config

Toolfold = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment(tmp_path: Path, home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TOOLFOLD_HOME": str(home),
        "TOOLFOLD_NO_DAEMON": "1",
    }


@pytest.fixture
def toolfold(tmp_path: Path, environment: dict[str, str]) -> Toolfold:
    """Return `toolfold("run", "-c", "1 + 1")`: the command, run in an empty directory."""

    def run(
        *arguments: str, stdin: str = "", cwd: Path = tmp_path
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [python(), "-m", "toolfold", *arguments],
            input=stdin, capture_output=True, text=True, env=environment, cwd=cwd, timeout=55,
        )  # fmt: skip

    return run


@pytest.fixture
def config(tmp_path: Path) -> str:
    return str(write_config(tmp_path / "servers.json", {"null": test_server("null")}))


def test_code_comes_from_the_command_line_a_file_or_standard_input(
    toolfold: Toolfold, config: str, tmp_path: Path
) -> None:
    code = "import null\nnull.put(value='x')['value'] * 3"
    (tmp_path / "code.py").write_text(code)

    outputs = [
        toolfold("run", "--config", config, "-c", code).stdout,
        toolfold("run", "--config", config, str(tmp_path / "code.py")).stdout,
        toolfold("run", "--config", config, stdin=code).stdout,
    ]

    assert outputs == ["xxx\n"] * 3


def test_the_typed_result_is_printed_as_json(toolfold: Toolfold, config: str) -> None:
    done = toolfold(
        "run", "--json", "--config", config, "-c", "import null\nprint('hi')\nnull.put(value=1)"
    )
    result = json.loads(done.stdout)

    assert result["success"] is True
    assert result["output"] == "hi\n"
    assert result["value"] == {"value": 1, "count": 1}
    assert result["error"] is None
    assert result["calls"] == [{"tool": "null.put", "completed": 1, "failed": 0, "unknown": 0}]
    assert set(result["times"]) == {
        "plan_ms", "connect_ms", "check_ms", "sandbox_ms", "upstream_ms", "shape_ms",
    }  # fmt: skip


def test_a_failed_run_says_so_on_standard_error_and_in_its_status(toolfold: Toolfold) -> None:
    done = toolfold("run", "-c", "1 / 0")

    assert done.returncode == 1
    assert done.stdout == ""
    assert "Error on line 1: ZeroDivisionError" in done.stderr


def test_a_limit_can_be_set_for_one_command(toolfold: Toolfold, config: str) -> None:
    code = "import null\nfor i in range(9):\n    null.put(value=i)"
    done = toolfold("run", "--config", config, "--set", "limits.calls=4", "-c", code)

    assert done.returncode == 1
    assert "The run made more than 4 tool calls." in done.stderr
    assert "Calls completed before it stopped: null.put 4." in done.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("run", "missing.py"), "Cannot read missing.py"),
        (("run", "--config", "missing.json", "-c", "1"), "missing.json"),
        (("run", "--set", "limits.cals=4", "-c", "1"), "limits.calls"),
        (("run", "--set", "nonsense", "-c", "1"), "KEY=VALUE"),
        (("trust",), "no .toolfold/mcp.json or .mcp.json"),
        (("tools", "describe", "nothing.here"), "No tool is named 'nothing.here'"),
    ],
)
def test_mistakes_get_one_clear_line(
    toolfold: Toolfold, arguments: tuple[str, ...], complaint: str
) -> None:
    done = toolfold(*arguments)

    assert done.returncode == 2
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [("list",), ("search", "anything")])
def test_who_has_no_server_is_told_where_to_put_one(
    toolfold: Toolfold, arguments: tuple[str, ...]
) -> None:
    done = toolfold("tools", *arguments)

    assert done.returncode == 1
    assert "No server is configured. Put yours into" in done.stderr


def test_tools_are_listed_searched_and_described(toolfold: Toolfold, config: str) -> None:
    listed = toolfold("tools", "list", "--config", config)
    found = toolfold("tools", "search", "--config", config, "echo", "a", "value")
    described = toolfold("tools", "describe", "--config", config, "null.put")

    names = [line.split("(")[0] for line in listed.stdout.splitlines()]
    assert "memory.search" in names
    assert [name for name in names if name.startswith("null.")] == ["null.echo", "null.put"]
    assert found.stdout.splitlines()[0].startswith("null.echo(value: Any)")
    assert "def put(value" in described.stdout


def test_tools_are_printed_as_json_where_asked(toolfold: Toolfold, config: str) -> None:
    listed = json.loads(toolfold("tools", "list", "null", "--json", "--config", config).stdout)
    found = json.loads(toolfold("tools", "search", "put", "--json", "--config", config).stdout)
    [put] = json.loads(
        toolfold("tools", "describe", "null.put", "--json", "--config", config).stdout
    )

    assert [entry["name"] for entry in listed] == ["null.echo", "null.put"]
    assert found[0]["signature"] == "null.put(value)"
    assert put["input_schema"]["required"] == ["value"]
    assert put["read_only"] is False


def test_tools_that_are_known_are_found_without_their_servers(
    toolfold: Toolfold, config: str
) -> None:
    search = ("tools", "search", "--config", config, "echo")
    first = toolfold(*search, "--set", "connect_timeout_s=20")
    again = toolfold(*search, "--set", "connect_timeout_s=0.001")

    assert first.stdout.splitlines()[0].startswith("null.echo(value: Any)")
    assert again.stdout == first.stdout


def test_what_is_kept_for_search_does_not_outlive_a_change(
    toolfold: Toolfold, tmp_path: Path
) -> None:
    file = write_config(tmp_path / "servers.json", {"one": test_server("null")})
    search = ("tools", "search", "--config", str(file), "put", "a", "value")

    first = [toolfold(*search).stdout for _ in range(2)]
    write_config(file, {"one": test_server("null"), "two": test_server("null")})
    second = [toolfold(*search).stdout for _ in range(2)]
    file.unlink()
    third = toolfold(*search)

    assert first[0] == first[1]
    assert "one.put" in first[0]
    assert second[0] == second[1]
    assert "two.put" in second[0]
    assert third.returncode == 2
    assert "there is no such file" in third.stderr


def test_servers_of_a_project_start_only_after_they_are_trusted(
    toolfold: Toolfold, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    file = write_config(project / ".mcp.json", {"null": test_server("null")})
    code = "import tools; print(tools.servers())"

    before = toolfold("run", "-c", code, cwd=project).stdout
    trusted = toolfold("trust", cwd=project)
    after = toolfold("run", "-c", code, cwd=project).stdout
    file.write_text(file.read_text() + "\n")
    edited = toolfold("run", "-c", code, cwd=project).stdout
    toolfold("trust", cwd=project)
    toolfold("trust", "--revoke", cwd=project)
    revoked = toolfold("run", "-c", code, cwd=project).stdout

    assert "run `toolfold trust`" in before
    assert "null" in trusted.stdout
    assert after.splitlines()[0] == "null: 2 tools"
    assert "run `toolfold trust`" in edited
    assert "run `toolfold trust`" in revoked


def test_doctor_fails_where_a_file_cannot_be_read(toolfold: Toolfold, home: Path) -> None:
    (home / "config").mkdir(parents=True)
    (home / "config" / "mcp.json").write_text('{"mcpServers": {"a": }}')

    done = toolfold("doctor")

    assert "is not valid JSON: line 1" in done.stdout
    assert done.returncode == 1


def test_doctor_gives_every_server_a_line(toolfold: Toolfold, tmp_path: Path) -> None:
    servers = {
        "good": test_server("null"),
        "broken": {"command": "no-such-command-anywhere"},
        "unset": {"command": "x", "env": {"KEY": "${NOT_SET_ANYWHERE}"}},
    }
    config = str(write_config(tmp_path / "doctor.json", servers))
    sick = toolfold("doctor", "--config", config)
    del servers["broken"], servers["unset"]
    well = toolfold("doctor", "--config", str(write_config(tmp_path / "well.json", servers)))

    lines = {
        line.split(":")[0].split()[-1]: line for line in sick.stdout.splitlines() if ":" in line
    }
    assert sick.returncode == 1
    assert lines["good"].startswith("ok")
    assert "2 tools as `import good`" in lines["good"]
    assert lines["broken"].startswith("FAILED")
    assert "Is it installed and on the PATH?" in lines["broken"]
    assert "fix: correct it in mcp.json, or `toolfold remove broken`; `toolfold logs" in sick.stdout
    assert "NOT_SET_ANYWHERE" in lines["unset"]
    assert well.returncode == 0


def test_errors_at_a_terminal_name_commands_where_models_read_code(
    toolfold: Toolfold, config: str, home: Path
) -> None:
    def run(code: str, *options: str) -> subprocess.CompletedProcess[str]:
        return toolfold("run", "-c", code, "--config", config, *options)

    dry = run("import null\nnull.put(value=1)\n'the value'", "--dry-run")
    unseen = run("open('/etc/passwd')")
    mistyped = run("import memory\nmemory.search(5)")
    toolfold("policy", "deny", "null.put", "--config", config)
    denied = run("import null\nnull.put(value=1)")
    for_models = json.loads(run("import null\nnull.put(value=1)", "--json").stdout)["text"]
    toolfold("policy", "unset", "null.put", "--config", config)
    (home / "config" / "policy.toml").write_text('[[policy]]\naction = "ask"\ntools = ["null.*"]\n')
    waiting = run("import null\nnull.put(value=1)")
    unknown = toolfold("tools", "describe", "null.zzzzzzzz", "--config", config)

    assert dry.stdout.startswith("Dry run: nothing was changed.")
    assert dry.stdout.endswith("the value\n")
    assert "Code sees none of your files: use a server." in unseen.stderr
    assert "memory.search takes text, not 5." in mistyped.stderr
    assert "`toolfold policy unset null.put` removes one about this tool alone." in denied.stderr
    assert "the user" not in denied.stderr + waiting.stderr
    assert "ask the user to change the rule" in for_models
    assert re.search(r" Run `toolfold approve (\w+)` or `toolfold reject \1`\.", waiting.stderr)
    assert "`toolfold tools search WORDS` finds tools." in unknown.stderr


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, toolfold.__main__ as m\n"
        "sys.argv = ['toolfold', '--help']\n"
        "try:\n    m.main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'mcp', 'pydantic', 'anyio', 'pydantic_monty', 'asyncio', 'tiktoken'}\n"
        "print('loaded:', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)

    assert done.stdout.splitlines()[-1] == "loaded: []"


@pytest.mark.parametrize(
    "command",
    [
        ["policy"],
        ["policy", "check", "memory.search"],
        ["policy", "import", "--dry-run"],
        ["privacy", "status"],
        ["approve"],
        ["runs", "verify"],
        ["sessions"],
        ["skills", "list"],
    ],
    ids=" ".join,
)
def test_what_a_person_asks_is_answered_without_the_sdk(
    command: list[str], environment: dict[str, str]
) -> None:
    code = (
        "import sys, toolfold.__main__ as m\n"
        f"sys.argv = ['toolfold', *{command!r}]\n"
        "status = m.main()\n"
        "print('loaded:', status, sorted({'mcp', 'mcp_types', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=50
    )

    assert done.stdout.splitlines()[-1] == "loaded: 0 []", done.stderr


def test_rules_of_a_client_close_a_server_that_was_renamed_here(
    toolfold: Toolfold, home: Path
) -> None:
    names = ("crm", "crm_2", "crm_bank", "my server_3")
    (home / "config").mkdir(parents=True, exist_ok=True)
    write_config(home / "config" / "mcp.json", {name: {"command": "x"} for name in names})
    rules = [("deny", "mcp__crm__put"), ("ask", "mcp__my_server__put"), ("allow", "mcp__crm__get")]
    kept = [{"source": "s", "scope": "user", "list": each, "rule": rule} for each, rule in rules]
    (home / "config" / "imported-rules.json").write_text(json.dumps({"rules": kept}))
    done = toolfold("policy", "import", "--dry-run")

    tools = [line.split('"')[1] for line in done.stdout.splitlines() if line.startswith("tools")]
    assert tools == ["crm.put", "crm_2.put", "my_server.put", "my_server_3.put"]
    assert "allow mcp__crm__get: it may mean crm.get or crm_2.get" in done.stdout


def test_rules_of_a_client_that_cannot_be_taken_over_are_named_and_kept(
    toolfold: Toolfold, home: Path
) -> None:
    path = home / "config" / "imported-rules.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    rules = ["mcp__crm__put", "mcp__crm put", f"mcp__crm__{'x' * 300}"]
    kept = [{"source": "s", "scope": "user", "list": "deny", "rule": rule} for rule in rules]
    path.write_text(json.dumps({"rules": kept}))

    before = toolfold("policy")
    done = toolfold("policy", "import")
    again = toolfold("policy", "import")
    after = toolfold("policy")

    for each in (before, after):
        assert each.returncode == 0, each.stderr
        assert "Not in force, write it into policy.toml: deny mcp__crm put" in each.stdout
        assert "longer than 150 characters" in each.stdout
    assert "Not imported: deny mcp__crm put: it is not a rule about a tool" in done.stdout
    assert 'tools = "crm.put"' in done.stdout
    assert "all other rules of your client are here already" in again.stdout
    assert [each["rule"] for each in json.loads(path.read_text())["rules"]] == rules[1:]


def _session_members(session: int) -> list[str]:
    """Return the commands of the processes that belong to a session and are not dead."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, fields = stat.read_text().rpartition(")")
        except OSError:
            continue
        state, _, _, of_session = fields.split()[:4]
        if int(of_session) == session and state != "Z":
            members.append(name)
    return members


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="counts processes in /proc")
@pytest.mark.parametrize("ending", ["by itself", "SIGTERM", "SIGINT", "SIGKILL"])
def test_no_process_is_left_behind(
    ending: str, config: str, environment: dict[str, str], tmp_path: Path
) -> None:
    code = "import null\nprint(null.put(value=1))"
    if ending != "by itself":
        code += "\nwhile True:\n    null.put(value=2)"
    process = subprocess.Popen(
        [sys.executable, "-m", "toolfold", "run", "--config", config, "-c", code],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, cwd=tmp_path,
        start_new_session=True,
    )  # fmt: skip
    if ending != "by itself":
        _wait_until(lambda: any("monty" in name for name in _session_members(process.pid)))
        process.send_signal(getattr(signal, ending))
    status = process.wait(timeout=40)
    _wait_until(lambda: not _session_members(process.pid))

    assert (status == 0) == (ending == "by itself")


def _wait_until(condition: Callable[[], bool]) -> None:
    waited = 0.0
    while not condition():
        assert waited < 20, "it did not come about in 20 s"
        signal.sigtimedwait([], 0.02)
        waited += 0.02


def _exits(times: int, config: str, environment: dict[str, str]) -> list[int]:
    command = [sys.executable, "-m", "toolfold", "run", "--config", config, "-c"]
    code = "import null, asyncio\nawait asyncio.gather(*[null.echo(value=i) for i in range(9)])\n1"
    return [
        subprocess.run(
            [*command, code], env=environment, capture_output=True, timeout=50
        ).returncode
        for _ in range(times)
    ]


def test_the_host_exits_cleanly(config: str, environment: dict[str, str]) -> None:
    assert _exits(3, config, environment) == [0] * 3


@pytest.mark.soak
def test_the_host_exits_cleanly_fifty_times(config: str, environment: dict[str, str]) -> None:
    assert _exits(50, config, environment) == [0] * 50
