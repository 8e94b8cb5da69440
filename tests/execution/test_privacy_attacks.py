"""Guest code that wants to know what a placeholder stands for: a table, and nobody succeeds.

After each attempt all that the model, a client or a file got is searched for the real values, as
they are and in the encodings that code could have given them.
"""

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support import ROOT, MakeApp, Running, test_server

from toolfold.execution.runtime import SessionRequest

sys.path.insert(0, str(ROOT / "tests" / "servers"))

from people import ROWS, SECRETS, SHORT

SETTINGS = """
[privacy]
mode = "on"
[servers.stranger]
receives = []
[servers.plain]
privacy = "off"
"""
HEAD = "import crm, mailer, plain, stranger\nrow = crm.list_customers()[0]\nsecret = row['email']\n"

ATTEMPTS = {
    "prints it": "print(secret)\nsecret",
    "slices it": "[secret[0], secret[1:-1], secret[::-1], secret.strip('[]')]",
    "letter by letter": "for letter in secret:\n    print(letter, ord(letter))",
    "joins it": "'-'.join(secret) + '|'.join([secret, secret]) + secret * 2",
    "formats it": "f'{secret!r:>60}' + '%s' % secret + '{}'.format(secret)",
    "pads and centres it": "secret.center(80) + secret.zfill(90) + secret.ljust(40, '.')",
    "changes its case": "[secret.upper(), secret.lower(), secret.title(), secret.swapcase()]",
    "encodes it by hand": "[hex(ord(letter)) for letter in secret]",
    "as bytes": "[secret.encode().hex(), list(secret.encode())]",
    "as JSON": "import json\njson.dumps({'row': row, 'secret': [secret]})",
    "measures it": "[len(secret), secret > 'm', sorted([secret, 'n']), hash(secret) % 1]",
    "in an exception": "raise ValueError(secret)",
    "in a caught exception": "try:\n    int(secret)\nexcept Exception as e:\n    print(repr(e))",
    "as a missing key": "{}[secret]",
    "in a failed assertion": "assert not secret, row",
    "in the words of a failing tool": "mailer.fail(value=secret)",
    "the same, caught": "try:\n    mailer.fail(value=row)\nexcept Exception as e:\n    print(e)",
    "as a dictionary key of an answer": "print(crm.by_email())",
    "as a dictionary key on the way": "mailer.echo(value={secret: {row['phone']: secret}})",
    "an echo": "mailer.echo(value=secret, other=row)",
    "an echo within words": "mailer.echo(value=f'a {secret}b', other='x' + row['name'] + ' y')",
    "an echo in two arguments": "mailer.echo(value=secret[:4], other=secret[4:])",
    "an echo in two list items": "mailer.echo(value=[secret[:4], secret[4:]])",
    "an echo of a double placeholder": "mailer.echo(value=f'[{secret}]', other=f'[EMAIL_{secret}')",
    "an echo of an echo": "mailer.echo(value=mailer.echo(value=mailer.echo(value=row)))",
    "an echo in capitals": "mailer.echo(value=secret.lower(), other=secret.upper())",
    "forged numbers": "[mailer.echo(value=f'[EMAIL_{n}]')['value'] for n in range(1, 6)]",
    "forged variants": "[mailer.echo(value=f'[EMAIL_1.{n}]')['value'] for n in range(2, 5)]",
    "forged kinds": "[mailer.echo(value=f'[{k}_1]') for k in ('NAME', 'PHONE', 'SECRET', 'KEY')]",
    "look-alike brackets": "mailer.echo(value=secret.replace('[', '\uff3b'))",
    "look-alike letters": "mailer.echo(value=secret.replace('E', '\u0415').replace('A', '\u0410'))",
    "look-alike digits": "mailer.echo(value=secret.replace('1', '\uff11').replace('_', '\uff3f'))",
    "invisible signs": "mailer.echo(value='\\u200b'.join(secret), other=secret + '\\u202e')",
    "a path in the arguments": "mailer.echo(value='[EMAIL_1]/../[EMAIL_2]', other='%5BEMAIL_1%5D')",
    "somebody who may not receive it": "stranger.echo(value=secret)",
    "an echo of somebody who hides nothing": "plain.echo(value=secret, other=f'x{secret}')",
    "the same, of what is short": "plain.echo(value=crm.short())",
    "a large echo of what is short": (
        "name = crm.short()['customer']['first_name']\n"
        "told = mailer.echo(value=f'for {name} ', other='x y ' * 100_000)\n"
        "with open(told['path']) as f:\n    print(f.read(99))"
    ),
    "what somebody who hides nothing fails with": "plain.fail(value=row)",
    "the same, hidden deep": "stranger.echo(value={'a': [{'b': ['x ' + secret.lower()]}]})",
    "the same, as a key": "stranger.echo(value={secret: 1})",
    "the same, through a friend": "stranger.echo(value=mailer.echo(value=row))",
    "a memory note": "import memory\nmemory.store(str(row))\nprint(memory.search('customer'))",
    "an entity of the graph": "import memory\nmemory.create_entity(row['name'], 'x', [secret])",
    "a file": "with open('/workspace/a', 'w') as f:\n    f.write(str(row))\n"
    "with open('/workspace/a') as f:\n    print(f.read())",
    "cached": "cached('k', 60, lambda: crm.list_customers())",
    "progress": "progress(1, 2, str(row))",
    "an observed shape": "import tools\ncrm.by_email()\nprint(tools.describe('crm.by_email'))",
    "the stub of a server": "with open('/servers/crm/by_email.pyi') as f:\n    print(f.read())",
    "a resource": "import tools\nprint(tools.read('crm', 'people://customers'))",
    "an attachment": "with open(crm.attachment()['path']) as f:\n    print(f.read())",
    "an image that is text": "told = crm.attachment(mime_type='image/svg+xml')\nshow(told)",
    "a large file": "told = crm.export(rows=4000)\nimport workspace\n"
    "print(told, workspace.records(told['path'], 3990, 5), workspace.read(told['path'], 0, 900))",
    "its own runs": "import runs\nprint(runs.get('0'))",
    "glued to letters": "mailer.echo(value='x' + row['name'] + 'y', other=f'7{row[\"phone\"]}7')",
    "glued to each other": "mailer.echo(value=row['name'] + row['name'] + secret + row['phone'])",
    "glued to a long word": "mailer.echo(value='x' * 500 + row['name'])",
    "glued to joiners": "mailer.echo(value='_' + row['name'] + '_1', other='\u0301' + row['name'])",
    "short values": "short = crm.short()['customer']\n"
    "mailer.echo(value=short, other=[*short.values()])",
    "short values in words": "short = crm.short()['customer']\n"
    "mailer.fail(value=f\"a {short['first_name']} in {short['zip']}\")",
    "arithmetic": "n = int(secret[7:-1]) + 1\nmailer.echo(value=f'[EMAIL_{n}]')",
}


def encodings(text: str) -> set[bytes]:
    plain = text.encode()
    found = {plain, plain[::-1], plain.hex().encode(), str(list(plain))[1:-1].encode()}
    found |= {base64.b64encode(b"x" * n + plain)[4:-4] for n in range(3)}
    found |= {" ".join(text).encode(), "-".join(text).encode(), text.casefold().encode()}
    found |= {text.upper().encode(), json.dumps(text)[1:-1].encode()}
    digits = "".join(filter(str.isdigit, text))
    return found | ({digits.encode()} if len(digits) > 7 else set())


FORMS = {value: encodings(value) for value in SECRETS}
SHORT_FORMS = [f"{s}{v}{s}".encode() for v in SHORT["customer"].values() for s in "' "]


def leaked(content: bytes) -> set[str]:
    return {value for value, forms in FORMS.items() if any(form in content for form in forms)}


def leaked_files(home: Path) -> dict[str, set[str]]:
    files = [path for path in home.rglob("*") if path.is_file()]
    return {str(path): found for path in files if (found := leaked(path.read_bytes()))}


def said(result: Any) -> bytes:
    images = "".join(base64.b64decode(blob.base64).decode() for blob in result.images)
    parts = [result.text, result.output, repr(result.value), repr(result.error), images]
    return "\n".join(parts).encode()


@pytest.fixture
def servers(tmp_path: Path) -> dict[str, Any]:
    names = ("crm", "mailer", "plain", "stranger")
    return {name: test_server("people", tmp_path / f"{name}.jsonl") for name in names}


async def attempt(toolfold: Running, code: str, **options: Any) -> bytes:
    heard: list[object] = []
    result = await toolfold.run(code, on_progress=lambda *told: heard.append(told), **options)
    assert not result.text.startswith("Nothing was run"), result.text
    return said(result) + repr(heard).encode()


@pytest.mark.parametrize("name", ATTEMPTS)
async def test_no_code_gets_at_what_is_concealed(
    name: str, running: MakeApp, servers: dict[str, Any], tmp_path: Path, home: Path
) -> None:
    options = {"toml": SETTINGS, "limits__result_bytes": 300_000}
    async with running(servers, **options) as toolfold:
        heard = await attempt(toolfold, HEAD + ATTEMPTS[name], session=SessionRequest("s"))

    assert (tmp_path / "crm.jsonl").exists(), heard.decode()
    assert leaked(heard) == set()
    assert not any(form in heard for form in SHORT_FORMS)
    assert leaked_files(home) == {}
    stranger = tmp_path / "stranger.jsonl"
    assert not stranger.exists() or leaked(stranger.read_bytes()) == set()


ENCODED = """
import base64, hashlib, zlib, codecs, pickle, traceback, inspect, sys, gc, io, logging
for make in (base64.b64encode, base64.b85encode, zlib.compress, hashlib.sha256):
    print(make(secret.encode()))
print(codecs.encode(secret, "rot13"), pickle.dumps(row))
print([each for each in gc.get_objects() if isinstance(each, str) and "@" in each][:50])
for frame in sys._current_frames().values():
    while frame:
        print(frame.f_code.co_name, {k: repr(v)[:200] for k, v in frame.f_locals.items()})
        frame = frame.f_back
logging.warning("%s", row)
try:
    mailer.fail(value=row)
except Exception as error:
    traceback.print_exc()
    print(vars(error), error.__cause__, error.__context__)
print(open("/proc/self/maps").read()[:200])
"""


async def test_nor_does_code_of_real_python(
    running: MakeApp, servers: dict[str, Any], home: Path
) -> None:
    async with running(servers, toml=SETTINGS, sandbox="cpython") as toolfold:
        if not toolfold.app.tiers.has_cpython:
            pytest.skip("There is no CPython tier on this machine.")
        heard = await attempt(toolfold, HEAD + ENCODED)

    assert b"[EMAIL_1]" in heard
    assert leaked(heard) == set()
    assert leaked_files(home) == {}


async def test_nor_a_dry_run_which_shows_what_would_be_sent(
    running: MakeApp, servers: dict[str, Any], tmp_path: Path, home: Path
) -> None:
    async with running(servers, toml=SETTINGS) as toolfold:
        heard = await attempt(toolfold, HEAD + "mailer.put(row=row)", dry_run=True)

    assert b"[EMAIL_1]" in heard
    assert not (tmp_path / "mailer.jsonl").exists()
    assert leaked(heard) == set()
    assert leaked_files(home) == {}


async def test_nor_does_the_question_whether_a_call_is_wanted(
    running: MakeApp, servers: dict[str, Any], tmp_path: Path, home: Path
) -> None:
    async with running(servers, toml=SETTINGS) as toolfold:
        heard = await attempt(toolfold, HEAD + "mailer.erase(who=secret)")

    assert b"toolfold approve" in heard
    assert b"[EMAIL_1]" in heard
    assert not (tmp_path / "mailer.jsonl").exists()
    assert leaked(heard) == set()
    assert leaked_files(home) == {}


async def test_nor_a_session_that_goes_on_later(
    running: MakeApp, servers: dict[str, Any], home: Path
) -> None:
    session = SessionRequest("s")
    async with running(servers, toml=SETTINGS) as toolfold:
        await attempt(toolfold, HEAD, session=session)
    async with running(servers, toml=SETTINGS) as toolfold:
        heard = await attempt(toolfold, "print(row)\nmailer.echo(value=row)", session=session)

    assert heard.count(b"[EMAIL_1]") >= 2
    assert leaked(heard) == set()
    assert leaked_files(home) == {}


async def test_nor_a_run_that_is_resumed(
    running: MakeApp, servers: dict[str, Any], tmp_path: Path, home: Path
) -> None:
    code = HEAD + "mailer.put(row=row)\nmailer.erase(who=secret)\nprint(row)"
    async with running(servers, toml=SETTINGS) as toolfold:
        first = await toolfold.run(code)
    async with running(servers, toml=SETTINGS) as toolfold:
        again = await toolfold.app.runtime.resume(first.run_id)

    assert "answered from the record" in again.text
    assert b"[EMAIL_1]" in said(again)
    assert len((tmp_path / "mailer.jsonl").read_text().splitlines()) == 1
    assert leaked(said(first) + said(again)) == set()
    assert leaked_files(home) == {}


SKILL = '''
def reveal_all(number: int) -> str:
    """Tell what a placeholder stands for."""
    import mailer
    return str(mailer.echo(value=f"[EMAIL_{number}]")) + "[EMAIL_1]"
'''


async def test_nor_a_skill(running: MakeApp, servers: dict[str, Any], home: Path) -> None:
    save = SKILL + 'import skills\nskills.save("reveal_all", "reveal_all", "Reveal")'
    use = "from skills import reveal_all\nreveal_all(1)"
    async with running(servers, toml=SETTINGS) as toolfold:
        await attempt(toolfold, HEAD)
        await attempt(toolfold, save)
        heard = await attempt(toolfold, use)

    assert b"[EMAIL_1]" in heard
    assert leaked(heard) == set()
    assert leaked_files(home) == {}


RESIDUAL = {
    "**Guessing.**": f"mailer.echo(value={ROWS[0]['email']!r})['value'] == secret",
    "**Sending.**": "mailer.put(row='[EMAIL_2]')['ok']",
    "**Counts and order.**": "len({each['email'] for each in crm.list_customers()}) == 3",
}


@pytest.mark.parametrize("channel", RESIDUAL)
async def test_what_remains_possible_is_documented(
    channel: str, running: MakeApp, servers: dict[str, Any]
) -> None:
    async with running(servers, toml=SETTINGS) as toolfold:
        result = await toolfold.run(HEAD + RESIDUAL[channel])

    assert result.value is True
    assert channel in (ROOT / "docs" / "privacy.md").read_text()
