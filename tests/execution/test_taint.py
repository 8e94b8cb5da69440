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
    "glued into an address": (
        "bank.put(row='https://pay.example/to/' + page['body'].split('account ')[1][:12])"
    ),
    "glued into a query": (
        "bank.put(row='see https://pay.example?to=' + page['body'].split()[12] + '&amount=1')"
    ),
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
    assert "contains an answer of web.page (call 1)" in result.text
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

    assert "contains an answer of web.page (call 1)" in later.text
    assert "unknown after a restart" in lost.text
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
    assert "`row` contains an answer of" in result.text
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
@pytest.mark.parametrize(
    "long",
    ["['some words ' * 40_000]", "[0] * 20_000", "[[None, {}, ''] for _ in range(10_000)]"],
    ids=["words", "numbers", "nothing"],
)
async def test_long_arguments_do_not_keep_others_waiting(
    long: str, running: MakeApp, servers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[tuple[int, int]] = []
    find = Taint.find

    def note(self: Taint, arguments: Any) -> str:
        looked.append((len(str(arguments)), threading.get_ident()))
        return find(self, arguments)

    monkeypatch.setattr(Taint, "find", note)
    async with running(servers, toml=SETTINGS) as toolfold:
        for value in ("'ours'", long):
            await toolfold.run(f"import web, bank\nweb.page()\nbank.fail(value={value})")

    beside = {size > 50_000: thread != threading.get_ident() for size, thread in looked}
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


@pytest.fixture
def careful(home: Path) -> None:
    (home / "config").mkdir(parents=True)
    (home / "config" / "policy.toml").write_text('careful = "deny"\n')


COMPUTED = {
    "glued to letters": "bank.put(row='a' + page['body'].split()[12] + 'b')",
    "in base64": "import base64\nbank.put(row=base64.b64encode(page['body'].encode()).decode())",
    "backwards": "bank.put(row=page['body'][::-1])",
    "a letter": "bank.put(row=page['body'][0])",
    "a small number": "bank.put(row=len(page['body']) % 100)",
    "whether it is so": "bank.put(row='invoices' in page['body'])",
    "nothing": "bank.put(row={}.get(page['body']))",
    "a key": "bank.put(row={page['title'][:1]: 'ours'})",
    "deep in a structure": "bank.put(row={'a': ['ours', {'b': page['title'][:2]}]})",
    "an f-string": "bank.put(row=f'ours {len(page)}')",
    "a piece of an f-string": "x = f'piece{page}'\nbank.put(row=x[:5])",
    "a note of ours": "import memory\nmemory.store(page['body'][::-1])",
}


@pytest.mark.usefixtures("careful")
@pytest.mark.parametrize("how", COMPUTED)
async def test_where_care_is_taken_nothing_computed_is_written(
    how: str, running: MakeApp, servers: dict[str, Any], tmp_path: Path
) -> None:
    code = f"import web, bank\npage = web.page()\n{COMPUTED[how]}"
    async with running(servers, toml=SETTINGS) as toolfold:
        result = await toolfold.run(code)

    assert not result.success
    assert "careful" in result.text
    assert "is not written in the program, and web.page (call 1) has answered" in result.text
    assert calls(tmp_path / "bank.jsonl") == []


@pytest.mark.usefixtures("careful")
async def test_where_care_is_taken_an_answer_without_telling_words_counts(
    running: MakeApp, servers: dict[str, Any], tmp_path: Path
) -> None:
    code = "import web, bank\nsaid = web.echo(value=7)['value']\nbank.put(row=said)"
    async with running(servers, toml=SETTINGS) as toolfold:
        literal = await toolfold.run(code)
        computed = await toolfold.run(code.replace("row=said", "row=said + 1"))

    assert literal.success, literal.text  # 7 stands in the program
    assert "`row` is not written in the program" in computed.text
    assert len(calls(tmp_path / "bank.jsonl")) == 1


@pytest.mark.usefixtures("careful")
async def test_where_care_is_taken_literals_pass_and_so_does_all_before_the_answer(
    running: MakeApp, servers: dict[str, Any], tmp_path: Path
) -> None:
    code = """
import web, bank, skills
bank.put(row="a" + "b")
page = web.page()
row = {"to": "our own words", "amounts": [12, -3.5, 1.0, True, None], "empty": [{}]}
bank.put(row=row)
bank.put(row=dict(name="Ada"))
bank.echo(value=page["body"][::-1])

def double(value: int) -> int:
    \"\"\"Return it twice.\"\"\"
    return value * 2

skills.save("math.double", "double", "Twice a number.")
"""
    async with running(servers, toml=SETTINGS) as toolfold:
        result = await toolfold.run(code)

    assert result.success, result.text
    assert len(calls(tmp_path / "bank.jsonl")) == 4


@pytest.mark.usefixtures("careful")
async def test_where_care_is_taken_a_literal_with_the_words_of_an_answer_does_not_pass(
    running: MakeApp, servers: dict[str, Any], tmp_path: Path
) -> None:
    session = SessionRequest("s")
    async with running(servers, toml=SETTINGS) as toolfold:
        await toolfold.run("import web\npage = web.page()", session=session)
        copied = await toolfold.run("import bank\nbank.put(row='QX-4471-9920')", session=session)
        computed = await toolfold.run("import bank\nbank.put(row='o' * 2)", session=session)

    assert "`row` contains an answer of web.page (call 1)" in copied.text
    assert "`row` is not written in the program" in computed.text
    assert calls(tmp_path / "bank.jsonl") == []


async def test_only_a_rule_that_names_tainted_calls_opens_what_care_closes(
    running: MakeApp, servers: dict[str, Any], home: Path, tmp_path: Path
) -> None:
    policy = home / "config" / "policy.toml"
    policy.parent.mkdir(parents=True)
    allow = 'careful = "deny"\n[[policy]]\naction = "allow"\ntools = "bank.put"\n'
    code = "import web, bank\nbank.put(row=web.page()['body'])"
    found = {}
    for text in (allow, allow + "tainted = true\n"):
        policy.write_text(text)
        async with running(servers, toml=SETTINGS) as toolfold:
            found[text] = (await toolfold.run(code)).success

    assert list(found.values()) == [False, True]
    assert len(calls(tmp_path / "bank.jsonl")) == 1


async def test_a_project_may_ask_for_care_and_its_rules_do_not_open_it(
    running: MakeApp, servers: dict[str, Any], home: Path, tmp_path: Path
) -> None:
    for path, text in {
        home / "config" / "policy.toml": 'careful = "deny"\n',
        tmp_path / ".toolfold" / "policy.toml": (
            '[[policy]]\naction = "allow"\ntools = "*"\ntainted = true\n'
        ),
    }.items():
        path.parent.mkdir(parents=True)
        path.write_text(text)
    code = "import web, bank\nbank.put(row=web.page()['body'])"
    async with running(servers, toml=SETTINGS) as toolfold:
        assert not (await toolfold.run(code)).success
    (home / "config" / "policy.toml").write_text("")
    (tmp_path / ".toolfold" / "policy.toml").write_text('careful = "deny"\n')
    async with running(servers, toml=SETTINGS) as toolfold:
        result = await toolfold.run(code)

    assert "careful" in result.text
    assert calls(tmp_path / "bank.jsonl") == []


@pytest.mark.parametrize("value", ['"yes"', "true", '"allow"', '["ask"]'])
async def test_another_value_of_careful_allows_nothing(
    value: str, running: MakeApp, servers: dict[str, Any], home: Path, tmp_path: Path
) -> None:
    (home / "config").mkdir(parents=True)
    (home / "config" / "policy.toml").write_text(f"careful = {value}\n")
    async with running(servers, toml=SETTINGS) as toolfold:
        result = await toolfold.run("import bank\nbank.put(row=1)")

    assert '`careful` must be "ask" or "deny"' in result.text
    assert calls(tmp_path / "bank.jsonl") == []
