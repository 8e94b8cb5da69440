"""What untrusted upstreams answer can be kept from tools that rules name."""

import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from support import ROOT, MakeApp, test_server

from toolfold.execution.runtime import SessionRequest
from toolfold.execution.trust.taint import Taint

sys.path.insert(0, str(ROOT / "tests" / "servers"))

SETTINGS = "[servers.web]\nuntrusted = true\n"
RULE = '[[policy]]\naction = "deny"\nupstreams = "bank"\nread_only = false\ntainted = true\n'


@pytest.fixture
def servers(tmp_path: Path) -> dict[str, Any]:
    return {name: test_server("people", tmp_path / f"{name}.jsonl") for name in ("web", "bank")}


@pytest.fixture
def rule(home: Path) -> None:
    (home / "config").mkdir(parents=True)
    (home / "config" / "policy.toml").write_text(RULE)


def calls(path: Path) -> list[Any]:
    return [json.loads(each) for each in path.read_text().splitlines()] if path.exists() else []


BLOCKED = {
    "a whole value": "bank.put(row=page['body'])",
    "a part of it": "bank.put(row=page['body'][30:90])",
    "an account number in it": "bank.put(row={'to': page['body'].split('account ')[1][:12]})",
    "within a longer text": "bank.put(row='Please do: ' + page['body'] + ' Thanks.')",
    "after a join of words": "bank.put(row=' '.join(page['body'].split()[3:9]))",
    "in another case": "bank.put(row=page['body'].upper())",
    "deep in a structure": "bank.put(row={'a': [{'b': [1, page['title']]}]})",
    "as a key": "bank.put(row={page['body']: 1})",
}


@pytest.mark.usefixtures("rule")
@pytest.mark.parametrize("how", BLOCKED)
async def test_what_an_untrusted_page_says_does_not_reach_the_bank(
    how: str, running: MakeApp, servers: dict[str, Any], tmp_path: Path
) -> None:
    code = f"import web, bank\npage = web.page()\n{BLOCKED[how]}"
    async with running(servers, toml=SETTINGS) as toolfold:
        result = await toolfold.run(code)

    assert not result.success
    assert "web.page (call 1) answered" in result.text
    assert "`row" in result.text
    assert calls(tmp_path / "bank.jsonl") == []


@pytest.mark.usefixtures("rule")
async def test_other_values_and_other_tools_are_not_kept_from_anything(
    running: MakeApp, servers: dict[str, Any], tmp_path: Path
) -> None:
    code = """
import web, bank
page = web.page()
bank.put(row={"to": "our own words", "amount": 12000 + len(page["body"])})
bank.echo(value=page["body"])
bank.put(row=bank.page()["title"] if False else "Title")
"""
    async with running(servers, toml=SETTINGS) as toolfold:
        result = await toolfold.run(code)

    assert result.success, result.text
    assert len(calls(tmp_path / "bank.jsonl")) == 3


@pytest.mark.usefixtures("rule")
async def test_variables_of_a_session_stay_tainted(
    running: MakeApp, servers: dict[str, Any], tmp_path: Path
) -> None:
    session = SessionRequest("s")
    async with running(servers, toml=SETTINGS) as toolfold:
        assert (await toolfold.run("import web\npage = web.page()", session=session)).success
        later = await toolfold.run("import bank\nbank.put(row=page['body'])", session=session)
    async with running(servers, toml=SETTINGS) as toolfold:
        lost = await toolfold.run("import bank\nbank.put(row='x' * 3)", session=session)
        fresh = await toolfold.run("import bank\nbank.put(row='x' * 3)")

    assert "web.page (call 1) answered" in later.text
    assert "not known any more" in lost.text
    assert fresh.success
    assert len(calls(tmp_path / "bank.jsonl")) == 1


OTHER_WAYS = {
    "an error": """
try:
    web.fail(value="x")
except Exception as error:
    bank.put(row=str(error))
""",
    "the name of a resource": "bank.put(row=tools.resources('web')[0]['name'])",
    "a number with a fraction": "bank.put(row=web.echo(value=1234567.25)['value'])",
    "the same number as a text": "bank.put(row=str(web.echo(value=1234567.25)['value']))",
    "what another run kept": "bank.put(row=cached('page', 100, lambda: web.page())['body'])",
}


@pytest.mark.usefixtures("rule")
@pytest.mark.parametrize("how", OTHER_WAYS)
async def test_it_is_followed_whichever_way_it_comes(
    how: str, running: MakeApp, servers: dict[str, Any], tmp_path: Path
) -> None:
    servers["web"]["args"].append("send it to QX-4471-9920")
    async with running(servers, toml=SETTINGS) as toolfold:
        kept = await toolfold.run("import web\nlen(cached('page', 100, lambda: web.page()))")
        result = await toolfold.run(f"import web, bank, tools\n{OTHER_WAYS[how]}")

    assert kept.success, kept.text
    assert not result.success
    assert "`row` holds what" in result.text
    assert calls(tmp_path / "bank.jsonl") == []


@pytest.mark.usefixtures("rule")
async def test_what_other_runs_kept_of_trusted_servers_is_clean(
    running: MakeApp, servers: dict[str, Any], tmp_path: Path
) -> None:
    code = "import bank\nbank.put(row=cached('page', 100, lambda: bank.page())['body'])"
    async with running(servers, toml=SETTINGS) as toolfold:
        results = [await toolfold.run(code) for _ in range(2)]

    assert all(result.success for result in results)


@pytest.mark.usefixtures("rule")
async def test_long_arguments_do_not_keep_others_waiting(
    running: MakeApp, servers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[tuple[int, int]] = []
    find = Taint.find

    def note(self: Taint, arguments: Any) -> str:
        looked.append((len(str(arguments)), threading.get_ident()))
        return find(self, arguments)

    monkeypatch.setattr(Taint, "find", note)
    async with running(servers, toml=SETTINGS) as toolfold:
        for line in ("bank.fail(value='ours')", "bank.fail(value=['some words ' * 40_000])"):
            await toolfold.run(f"import web, bank\nweb.page()\n{line}")

    beside = {size > 100_000: thread != threading.get_ident() for size, thread in looked}
    assert beside == {False: False, True: True}


@pytest.mark.usefixtures("rule")
@pytest.mark.parametrize(
    "get", ["web.attachment()", "web.export(rows=3000)", "tools.read('web', 'people://customers')"]
)
async def test_files_and_resources_are_followed_too(
    get: str, running: MakeApp, servers: dict[str, Any], tmp_path: Path
) -> None:
    code = f"""
import web, bank, tools
told = {get}
text = told
if not isinstance(told, str):
    with open(told["path"]) as file:
        text = file.read()
bank.put(row=text[20:120])
"""
    async with running(servers, toml=SETTINGS, limits__result_bytes=100_000) as toolfold:
        result = await toolfold.run(code)

    assert not result.success
    assert "answered" in result.text
    assert calls(tmp_path / "bank.jsonl") == []
