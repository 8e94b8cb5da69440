"""Personal data at the border of runs: placeholders inside, real values outside."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from support import ROOT, MakeApp, test_server

sys.path.insert(0, str(ROOT / "tests" / "servers"))

from people import ROWS, SECRETS

ON = '[privacy]\nmode = "on"\n'


def received(path: Path) -> list[Any]:
    """Return the arguments of the calls that a server got."""
    return [json.loads(line).get("arguments") for line in path.read_text().splitlines()]


def leaks(where: Iterable[Path]) -> list[str]:
    """Return the files that hold a real value, in whatever encoding a text file has."""
    found = []
    for file in where:
        content = file.read_bytes()
        found += [f"{file}: {value}" for value in SECRETS if is_in(value, content)]
    return found


def is_in(value: str, content: bytes) -> bool:
    digits = "".join(filter(str.isdigit, value))
    spellings = {value, value.casefold(), json.dumps(value)[1:-1], value.replace(" ", "")}
    spellings |= {digits} if len(digits) > 7 else set()
    return any(each.encode() in content for each in spellings)


def files_of(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.is_file() and path.name != "vaults.key"]


@pytest.fixture
def servers(tmp_path: Path) -> dict[str, Any]:
    return {name: test_server("people", tmp_path / f"{name}.jsonl") for name in ("crm", "mailer")}


async def test_code_reads_placeholders_and_tools_get_the_real_values(
    running: MakeApp, servers: dict[str, Any], tmp_path: Path, home: Path
) -> None:
    code = """
import crm, mailer
rows = crm.list_customers()
for row in rows:
    mailer.put(row=row)
rows
"""
    async with running(servers, toml=ON) as toolfold:
        result = await toolfold.run(code)

    assert result.success, result.text
    found: Any = result.value
    assert found[0] == {
        "id": 0,
        "name": "[NAME_1]",
        "email": "[EMAIL_1]",
        "phone": "[PHONE_1]",
        "note": "Call [NAME_1] at [PHONE_1], or write to [EMAIL_1].",
    }
    assert received(tmp_path / "mailer.jsonl") == [{"row": row} for row in ROWS]
    assert not is_in_any(result.text)
    assert leaks(files_of(home)) == []


def is_in_any(text: str) -> bool:
    return any(is_in(value, text.encode()) for value in SECRETS)


async def test_json_within_a_string_of_an_answer_is_concealed_by_its_fields(
    running: MakeApp, servers: dict[str, Any]
) -> None:
    code = """
import crm, json
answer = crm.echo(value='{"first_name": "Grace", "last_name": "Hopper"}')
print(answer["value"])
json.loads(answer["value"])["last_name"]
"""
    async with running(servers, toml=ON) as toolfold:
        result = await toolfold.run(code)

    assert result.success, result.text
    assert result.value == "[NAME_2]"
    assert "Hopper" not in result.text
    assert "Grace" not in result.text


async def test_where_nothing_is_said_nothing_is_concealed(
    running: MakeApp, servers: dict[str, Any], home: Path
) -> None:
    async with running(servers) as toolfold:
        result = await toolfold.run("import crm\ncrm.list_customers()[0]['email']")

    assert result.value == ROWS[0]["email"]
    assert not (home / "data" / "vaults.db").exists()


async def test_a_server_can_be_left_out_and_another_taken_in(
    running: MakeApp, servers: dict[str, Any]
) -> None:
    toml = '[servers.crm]\nprivacy = "on"\n'
    code = "import crm, mailer\n[s.list_customers()[0]['email'] for s in (crm, mailer)]"
    async with running(servers, toml=toml) as toolfold:
        assert (await toolfold.run(code)).value == ["[EMAIL_1]", ROWS[0]["email"]]
    async with running(servers, toml=ON + '[servers.mailer]\nprivacy = "off"\n') as toolfold:
        assert (await toolfold.run(code)).value == ["[EMAIL_1]", ROWS[0]["email"]]


async def test_an_upstream_gets_only_the_kinds_that_it_may_receive(
    running: MakeApp, servers: dict[str, Any], tmp_path: Path
) -> None:
    toml = ON + '[servers.mailer]\nreceives = ["NAME"]\n'
    code = """
import crm, mailer
row = crm.list_customers()[0]
mailer.echo(value=row["name"])
mailer.echo(value=[row["name"], {"to": row["email"]}])
"""
    async with running(servers, toml=toml) as toolfold:
        result = await toolfold.run(code)

    assert not result.success
    for part in ("mailer.echo", "[EMAIL_1]", "EMAIL", "receives", "[servers.mailer]"):
        assert part in result.text
    assert received(tmp_path / "mailer.jsonl") == [{"value": ROWS[0]["name"]}]


async def test_what_an_upstream_says_of_a_failure_is_concealed(
    running: MakeApp, servers: dict[str, Any], home: Path
) -> None:
    async with running(servers, toml=ON) as toolfold:
        result = await toolfold.run("import crm\ncrm.fail(value='x')")

    assert "no mailbox for [EMAIL_1]" in result.text
    assert leaks(files_of(home)) == []


async def test_an_error_of_the_protocol_is_the_servers_word_whatever_its_code(
    running: MakeApp, servers: dict[str, Any], home: Path
) -> None:
    async with running(servers, toml=ON) as toolfold:
        result = await toolfold.run("import crm\ncrm.refuse()")

    assert "crm: refuse failed: no mailbox for [EMAIL_1]" in result.text
    assert leaks(files_of(home)) == []


async def test_the_last_words_of_a_server_that_does_not_start_are_masked(
    running: MakeApp, home: Path
) -> None:
    words = f"import sys; sys.exit('no login for {ROWS[0]['email']}: password=hunter22')"
    servers = {"crm": {"command": sys.executable, "args": ["-c", words]}}
    async with running(servers) as toolfold:
        listed = await toolfold.run("import tools\ntools.servers()")
        refused = await toolfold.run("import crm\ncrm.list_customers()")

    for result in (listed, refused):
        assert "no login for [EMAIL]: password=[SECRET]" in result.text
    assert leaks((home / "data").glob("runs.db*")) == []


async def test_an_unknown_placeholder_is_left_alone_and_noted(
    running: MakeApp, servers: dict[str, Any], tmp_path: Path
) -> None:
    async with running(servers, toml=ON) as toolfold:
        result = await toolfold.run("import crm\ncrm.echo(value='[EMAIL_99]')['value']")
        back = await toolfold.run(f"import crm\ncrm.echo(value={result.value!r})['value']")

    assert "[EMAIL_99] (crm.echo)" in result.text
    assert result.value == back.value == "[LITERAL_1]"
    assert received(tmp_path / "crm.jsonl") == [{"value": "[EMAIL_99]"}] * 2


@pytest.mark.parametrize("form", ["list", "lines", "text", "nested"])
async def test_a_large_answer_is_concealed_in_its_file(
    form: str, running: MakeApp, servers: dict[str, Any], home: Path
) -> None:
    code = f"""
import crm
crm.list_customers()  # names in running text are found once a field has given them away
told = crm.export(rows=3000, form={form!r})
with open(told["path"]) as file:
    text = file.read()
[told, text[:400], len(text)]
"""
    async with running(servers, toml=ON, limits__result_bytes=100_000) as toolfold:
        result = await toolfold.run(code)

    assert result.success, result.text
    found: Any = result.value
    assert "[EMAIL_1]" in found[1]
    assert found[2] > 300_000
    assert "[NAME_" in found[1]
    assert leaks(files_of(home)) == []


@pytest.mark.parametrize("form", ["list", "lines", "text", "nested"])
async def test_an_answer_of_some_length_is_concealed(
    form: str, running: MakeApp, servers: dict[str, Any], home: Path
) -> None:
    code = f"import crm\ncrm.list_customers()\nstr(crm.export(rows=200, form={form!r}))[:2000]"
    async with running(servers, toml=ON) as toolfold:
        result = await toolfold.run(code)

    assert result.success, result.text
    assert "[EMAIL_1]" in str(result.value)
    assert leaks(files_of(home)) == []


async def test_what_is_too_large_to_be_concealed_is_refused(
    running: MakeApp, servers: dict[str, Any], monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.setattr("toolfold.execution.trust.privacy_border.MAX_STREAM_BYTES", 200_000)
    code = "import crm\ncrm.export(rows=3000)"
    async with running(servers, toml=ON, limits__result_bytes=100_000) as toolfold:
        result = await toolfold.run(code)

    assert "can be concealed" in result.text
    assert leaks(files_of(home)) == []


@pytest.mark.parametrize("mime_type", ["application/json", "image/svg+xml", "x/ada@example.org"])
async def test_a_file_that_is_text_is_concealed_as_it_is_saved(
    mime_type: str, running: MakeApp, servers: dict[str, Any], home: Path
) -> None:
    code = f"""
import crm
told = crm.attachment(mime_type={mime_type!r})
with open(told["path"]) as file:
    text = file.read()
[told, text]
"""
    async with running(servers, toml=ON) as toolfold:
        result = await toolfold.run(code)

    assert result.success, result.text
    found: Any = result.value
    assert json.loads(found[1])[0]["name"] == "[NAME_1]"
    assert "ada@" not in result.text
    assert leaks(files_of(home)) == []


async def test_resources_are_concealed_and_their_names_too(
    running: MakeApp, servers: dict[str, Any], home: Path
) -> None:
    code = """
import crm, tools
crm.list_customers()
listed = tools.resources("crm")
[listed[0]["name"], tools.read("crm", listed[0]["uri"])]
"""
    servers["crm"]["args"] += ["of", ROWS[0]["name"]]
    async with running(servers, toml=ON) as toolfold:
        result = await toolfold.run(code)

    assert result.success, result.text
    found: Any = result.value
    assert found[0] == "customers of [NAME_1]"
    assert json.loads(found[1])[2]["name"] == "[NAME_3]"
    assert leaks([each for each in files_of(home) if "offers" not in each.parts]) == []


async def test_placeholders_last_over_sessions_and_stay_in_notes(
    running: MakeApp, servers: dict[str, Any], tmp_path: Path, home: Path
) -> None:
    keep = """
import crm, memory
row = crm.list_customers()[1]
memory.store(f"{row['name']} wants a letter to {row['email']}")
with open("/workspace/who.txt", "w") as file:
    file.write(row["email"])
"""
    use = """
import mailer, memory
note = memory.search("who wants a letter").memories[0].preview
with open("/workspace/who.txt") as file:
    mailer.put(row=[note, file.read()])
note
"""
    async with running(servers, toml=ON) as toolfold:
        assert (await toolfold.run(keep)).success
    async with running(servers, toml=ON) as toolfold:
        result = await toolfold.run(use)

    assert result.value == "[NAME_2] wants a letter to [EMAIL_2]"
    [sent] = received(tmp_path / "mailer.jsonl")
    name, email = ROWS[1]["name"], ROWS[1]["email"]
    assert sent == {"row": [f"{name} wants a letter to {email}", email]}
    assert leaks(files_of(home)) == []


async def test_rules_decide_about_the_real_values_and_show_placeholders(
    running: MakeApp, servers: dict[str, Any], home: Path, tmp_path: Path
) -> None:
    code = """
import crm, mailer
for row in crm.list_customers():
    try:
        mailer.echo(value=row["email"])
    except Exception as error:
        print(error)
"""
    async with running(servers, toml=ON) as toolfold:
        (home / "config" / "policy.toml").write_text(
            '[[policy]]\naction = "deny"\ntools = "mailer.*"\n'
            "when = \"value contains '@quillfeather'\"\n"
        )
        result = await toolfold.run(code)

    assert len(received(tmp_path / "mailer.jsonl")) == 2
    assert result.output.count("a rule forbids it") == 1


async def test_a_pattern_and_a_field_of_the_users_own(
    running: MakeApp, servers: dict[str, Any]
) -> None:
    toml = ON + (
        "[privacy.fields]\nnote = 'REMARK'\n'*.phone' = ''\n[privacy.patterns]\n"
        "ACCOUNT_NO = 'QX-\\d{4}-\\d{4}'\n"
    )
    async with running(servers, toml=toml) as toolfold:
        row: Any = (await toolfold.run("import crm\ncrm.list_customers()[0]")).value
        page: Any = (await toolfold.run("import crm\ncrm.page()")).value

    assert row["note"] == "[REMARK_1]"
    assert "account [ACCOUNT_NO_1] at once" in page["body"]


async def test_nothing_is_sent_while_a_pattern_cannot_be_used(
    running: MakeApp, servers: dict[str, Any], tmp_path: Path
) -> None:
    toml = ON + "[privacy.patterns]\nOWN = '(a+)+b'\n"
    async with running(servers, toml=toml) as toolfold:
        result = await toolfold.run("import crm\ncrm.list_customers()")

    assert "The pattern for OWN cannot be used" in result.text
    assert not (tmp_path / "crm.jsonl").exists()
