"""Secrets of servers: where they come from, and the places where they never appear."""

import json
import logging
import os
import stat
import sys
import threading
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_door import door
from support import MakeApp, MakeConfig, Running
from support import test_server as server_entry

from toolfold.app import running_app
from toolfold.catalog.secrets import RedactedBytes, Redactor, Secrets
from toolfold.entrypoints.cli import run_command
from toolfold.entrypoints.commands.doctor import Findings, examine
from toolfold.entrypoints.commands.local import print_result
from toolfold.errors import ConfigError
from toolfold.storage.secrets import SecretStore

KEPT, TYPED = 'kept-Zx81/+ä"q', "typed-Qy72"
PRINTED, WRITTEN, LITERAL = "printed-Wv63", "written-Ut54", "literal-Sr45"
OF_API, OF_URL = "api-Pn36", "url-Ml27"
ALL = (KEPT, TYPED, PRINTED, WRITTEN, LITERAL, OF_API, OF_URL)

pytestmark = pytest.mark.anyio


@pytest.fixture
def store(home: Path) -> SecretStore:
    return SecretStore(home / "data", keyring=lambda: None)


class _Api(BaseHTTPRequestHandler):
    """Repeats who asks, in answers and in refusals."""

    def do_GET(self) -> None:
        asked = {"path": self.path, "headers": dict(self.headers)}
        content = json.dumps(asked).encode()
        self.send_response(400 if "refused" in self.path else 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serving_api(directory: Path) -> Iterator[dict[str, Any]]:
    """Give the entry of an API that repeats everything."""
    spec = {
        "openapi": "3.1.0",
        "info": {"title": "Echo", "version": "1"},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": {
            f"/{name}": {"get": {"operationId": name, "responses": {}}}
            for name in ("heard", "refused")
        },
    }
    path = directory / "echo.json"
    path.write_text(json.dumps(spec))
    with ThreadingHTTPServer(("127.0.0.1", 0), _Api) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/${{keyring:of_url}}"
        try:
            yield {"openapi": str(path), "url": url, "auth": {"token": "${keyring:of_api}"}}
        finally:
            server.shutdown()
            thread.join()


def indiscreet(directory: Path) -> dict[str, Any]:
    """Give the entry of a server that tells the secrets of every kind that it is given."""
    script = directory / "print_it.py"
    script.write_text(f"print({PRINTED!r})")
    (directory / "written").write_text(f"{WRITTEN}\n")
    env = {
        "SECRET_KEPT": "${keyring:kept}",
        "SECRET_TYPED": "${input:typed}",
        "SECRET_PRINTED": f"${{cmd:{sys.executable} -S {script}}}",
        "SECRET_WRITTEN": f"${{file:{directory / 'written'}}}",
        "SECRET_TOKEN": LITERAL,
    }
    return {**server_entry("indiscreet"), "env": env}


CODE = """
import asyncio, indiscreet, echo, world
told = indiscreet.tell()
print(told, indiscreet.long(size=300_000), echo.heard(), world.where())
for tool in (indiscreet.fail, echo.refused):
    try:
        tool()
    except RuntimeError as error:
        print(error)
with open("/workspace/told.txt", "w") as file:
    file.write(str(told))
"""


async def use_everything(app: Running) -> dict[str, str]:
    """Do what a day brings; return by place what was seen there."""
    seen: dict[str, str] = {}
    report = await app.run(CODE)
    seen["answers to the model"] = report.text + str(report.output)
    assert "[secret kept]" in seen["answers to the model"]
    failed = await app.run("import indiscreet\nindiscreet.fail()")
    seen["errors to the model"] = failed.text
    died = await app.run("import indiscreet\nindiscreet.die()")
    seen["errors of servers that die"] = died.text
    again = await app.run("import indiscreet\nindiscreet.tell()")
    seen["values"] = str(again.value)
    catalog = app.app.catalog
    await catalog.learn(fresh=True)
    tools = [tool for tool in catalog.tools if tool.module in {"indiscreet", "echo"}]
    seen["tools describe"] = "".join(map(catalog.describe, tools))
    seen["stubs"] = catalog.stub("indiscreet") + catalog.stub("echo")
    seen["statuses"] = str(catalog.statuses())
    seen["configuration"] = repr(app.app.config)
    async with door(app.app) as client:
        for path in ("/servers", "/tools/list", "/tools/discover", "/runs", "/health", "/metrics"):
            seen[f"REST {path}"] = (await client.get(path)).text
        ran = await client.post("/execute", json={"code": "import indiscreet\nindiscreet.tell()"})
        seen["REST /execute"] = ran.text
        for page in ("/", "/ui", "/ui/runs", "/ui/servers"):
            seen[f"dashboard {page}"] = (await client.get(page, follow_redirects=True)).text
    findings = Findings(is_quiet=True)
    await examine(app.app, findings)
    seen["doctor"] = str(findings.checks)
    children = Path("/proc").glob("[0-9]*/cmdline")
    ours = (each for each in children if _parent(each.parent) == os.getpid())
    lines = [each.read_bytes() for each in (Path("/proc/self/cmdline"), *ours) if each.exists()]
    seen["process arguments"] = b" ".join(lines).decode(errors="replace")
    return seen


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def test_no_secret_appears_in_any_place_but_where_it_is_kept(
    make_config: MakeConfig,
    store: SecretStore,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    for name, value in {"kept": KEPT, "typed": TYPED, "of_api": OF_API, "of_url": OF_URL}.items():
        store.put(name, value)
    own = tmp_path / "sources"
    own.mkdir()

    async def main(servers: dict[str, Any]) -> tuple[dict[str, str], Any]:
        async with running_app(make_config(servers)) as app:
            seen = await use_everything(Running(app))
            return seen, await app.runtime.run("import indiscreet\nindiscreet.fail()")

    with serving_api(own) as api:
        servers = {"indiscreet": indiscreet(own), "echo": api, "world": server_entry("world")}
        seen, failed = anyio.run(main, servers)
    monkeypatch.setenv("TOOLFOLD_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    print_result(Namespace(json=False), failed)
    assert run_command(["secrets", "list", "--json"]) == 0
    assert run_command(["backup", str(tmp_path / "all.tar.gz")]) == 0
    assert run_command(["savings", "--json", "--by", "tool"]) == 0
    printed = capfd.readouterr()
    seen["errors to the person, secrets list, backup listing, ledger"] = printed.out + printed.err
    seen["logs of this process"] = caplog.text
    kept_there = SecretStore.path(home / "data")
    on_disk = [each for each in home.rglob("*") if each.is_file() and each != kept_there]
    for path in on_disk:  # journal, audit, logs, crash logs, caches, sessions, workspace
        seen[str(path.relative_to(home))] = path.read_bytes().decode(errors="replace")

    assert any(name.endswith(".log.crash") for name in seen)
    assert {"data/runs.db"} <= seen.keys()
    spellings = [each for value in ALL for each in (value, json.dumps(value)[1:-1])]
    found = {place for place, text in seen.items() if any(each in text for each in spellings)}
    assert not found
    assert len(seen) >= 25


async def test_each_kind_of_secret_reaches_its_server(
    running: MakeApp, store: SecretStore, tmp_path: Path
) -> None:
    store.put("kept", KEPT)
    store.put("typed", TYPED)
    entry = indiscreet(tmp_path)
    code = "import indiscreet\nsorted(k for k in indiscreet.tell()['environ'] if 'SECRET' in k)"

    async with running({"indiscreet": entry}) as app:
        shown = await app.run("import indiscreet\nindiscreet.tell()['environ']['SECRET_KEPT']")
        names = await app.run(code)

    assert shown.value == "[secret kept]"
    assert len(list(names.value or ())) == 5  # type: ignore[call-overload]


async def test_a_server_whose_secret_is_missing_says_how_to_give_it(
    running: MakeApp, store: SecretStore, tmp_path: Path
) -> None:
    async with running({"indiscreet": indiscreet(tmp_path)}) as app:
        failed = await app.run("import indiscreet\nindiscreet.tell()")
        [status] = app.app.catalog.statuses()

    assert "it needs the secret 'kept'. Run: toolfold secrets set kept" in failed.text
    assert status.fault == "it needs the secret 'kept'. Run: toolfold secrets set kept"


COMMANDS = {
    "is not there": ("no-such-program x", "was not found"),
    "fails": (f"{sys.executable} -S -c 'raise SystemExit(3)'", "ended with status 3"),
    "prints nothing": (f"{sys.executable} -S -c pass", "is empty"),
    "prints too much": (f"{sys.executable} -S -c 'print(\"x\" * 99999)'", "more than 65,536"),
    "is for a shell": ("echo $HOME; id", ""),
    "lacks a quotation mark": ("op 'read", "quotation mark"),
}


@pytest.mark.parametrize("case", COMMANDS)
async def test_a_command_is_run_without_a_shell_and_its_failure_is_named(
    make_config: MakeConfig, store: SecretStore, case: str
) -> None:
    command, words = COMMANDS[case]
    entry = {**server_entry("world"), "env": {"A": f"${{cmd:{command}}}"}}
    [server] = make_config({"it": entry}).servers
    secrets = Secrets(store, {})
    path = os.environ["PATH"]

    if not words:
        filled = await secrets.filled(server, path=path, home="")
        assert dict(filled.config.env)["A"] == "$HOME; id"
        return
    with pytest.raises(ConfigError, match=words) as caught:
        await secrets.filled(server, path=path, home="")
    assert "x" * 20 not in str(caught.value)


async def test_a_command_is_asked_once_until_its_value_is_forgotten(
    make_config: MakeConfig, store: SecretStore, tmp_path: Path
) -> None:
    script = tmp_path / "count.py"
    script.write_text(
        f"p = {str(tmp_path / 'n')!r}\nopen(p, 'a').write('x')\nprint('value', len(open(p).read()))"
    )
    entry = {**server_entry("world"), "env": {"A": f"${{cmd:{sys.executable} -S {script}}}"}}
    [server] = make_config({"it": entry}).servers
    secrets = Secrets(store, {})

    async def value() -> str:
        filled = await secrets.filled(server, path=os.environ["PATH"], home="")
        return dict(filled.config.env)["A"]

    assert [await value(), await value()] == ["value 1", "value 1"]
    assert secrets.forget(server)
    assert await value() == "value 2"


@given(st.text(min_size=6, max_size=30), st.text(), st.integers(1, 9))
def test_a_secret_is_taken_out_wherever_pieces_are_cut(value: str, around: str, size: int) -> None:
    if value in around or value.isdecimal() or value in "[secret]":
        return
    redactor = Redactor({value: "[secret]"})
    text = json.dumps({"a": f"{around}{value}{around}"}).encode()
    passing = RedactedBytes(redactor)

    pieces = [passing.feed(text[at : at + size]) for at in range(0, len(text), size)]
    whole = b"".join([*pieces, passing.end()])

    assert json.dumps(value)[1:-1].encode() not in whole.replace(b"[secret]", b"")
    assert value not in redactor.text(f"{around}{value}{around}").replace("[secret]", "")


async def test_an_api_whose_secret_is_missing_lists_its_operations_and_says_so(
    running: MakeApp, tmp_path: Path
) -> None:
    with serving_api(tmp_path) as api:
        async with running({"echo": api}) as app:
            failed = await app.run("import echo\necho.heard()")
            await app.app.catalog.learn(fresh=True)
            [status] = app.app.catalog.statuses()

    assert "toolfold secrets set of_url" in failed.text
    assert status.tools
    assert "toolfold secrets set" in str(status.fault)


def test_the_file_of_secrets_is_private_and_a_new_value_is_a_new_revision(
    store: SecretStore, home: Path
) -> None:
    store.put("a", "first value")
    first = store.kept()["a"].revision
    store.put("a", "second value")
    path = SecretStore.path(home / "data")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert store.kept()["a"].revision != first
    assert store.get("a") == "second value"
    assert "second value" not in repr(store.kept())
    assert store.remove("a")
    assert store.get("a") is None
