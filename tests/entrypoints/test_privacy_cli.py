"""`toolfold privacy`, as a person types it."""

import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support import MakeApp, python, test_server, write_config

from toolfold.entrypoints.commands.privacy import with_mode
from toolfold.privacy.store import Vaults

ON = '[privacy]\nmode = "on"\n[servers.mailer]\nreceives = ["NAME"]\nuntrusted = true\n'


class Terminal:
    """Runs commands, for a person at a terminal or for a program."""

    def __init__(self, root: Path, home: Path) -> None:
        self.home, self._root = home, root
        self._environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "TOOLFOLD_HOME": str(home),
            "TOOLFOLD_NO_DAEMON": "1",
        }

    def program(
        self, *arguments: str, stdin: str = "", of: str = "privacy"
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python(), "-P", "-m", "toolfold", of, *arguments],
            env=self._environ,
            cwd=self._root,
            capture_output=True,
            text=True,
            input=stdin,
            timeout=60,
        )

    def person(self, *arguments: str) -> str:
        """Return what stands on the screen."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [python(), "-P", "-m", "toolfold", "privacy", *arguments],
            env=self._environ,
            cwd=self._root,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
        os.close(ours)
        process.wait(60)
        return shown.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # how a terminal says that nobody writes any more
        return b""


@pytest.fixture
def terminal(tmp_path: Path, home: Path) -> Terminal:
    (home / "config").mkdir(parents=True)
    (home / "config" / "config.toml").write_text(ON)
    servers: dict[str, Any] = {
        name: test_server("people", tmp_path / f"{name}.jsonl") for name in ("crm", "mailer")
    }
    write_config(home / "config" / "mcp.json", servers)
    return Terminal(tmp_path, home)


@pytest.fixture
async def filled(terminal: Terminal, running: MakeApp, tmp_path: Path) -> Terminal:
    """Return a terminal whose vault has the customers in it."""
    servers = {"crm": test_server("people", tmp_path / "crm.jsonl")}
    async with running(servers, toml=ON) as toolfold:
        await toolfold.run("import crm\ncrm.list_customers()")
    return terminal


async def test_placeholders_are_revealed_to_a_person_and_to_no_program(filled: Terminal) -> None:
    text = "Write to [NAME_1] at [EMAIL_1], not to [EMAIL_77]."

    shown = filled.person("reveal", text)
    refused = filled.program("reveal", text)

    assert "Write to Ottilie Brandhuber at ottilie.brandhuber@example.org" in shown
    assert "Not known here: [EMAIL_77]" in shown
    assert refused.returncode == 2
    assert "terminal" in refused.stderr
    assert "Ottilie" not in refused.stdout + refused.stderr
    exported = filled.program("export", of="runs").stdout
    reveals = [json.loads(line)["row"] for line in exported.splitlines() if '"reveal"' in line]
    told = {(row["upstream"], row["kind"], row["count"]) for row in reveals if "upstream" in row}
    assert told == {("the user", "NAME", 1), ("the user", "EMAIL", 1)}
    assert "Ottilie" not in exported


async def test_a_text_without_placeholders_is_not_taken_for_revealed(filled: Terminal) -> None:
    shown = filled.person("reveal", "EMAIL_1")

    assert "No placeholder in this text; they look like [EMAIL_1]." in shown


async def test_the_status_says_what_is_concealed_and_for_whom(filled: Terminal) -> None:
    status = filled.program("status")

    assert status.returncode == 0, status.stderr
    assert "Privacy is on." in status.stdout
    assert "crm: the model sees placeholders; the server gets the real values" in status.stdout
    assert "mailer: the model sees placeholders; the server gets real values of NAME;" in (
        status.stdout
    )
    assert "memory: its notes are shown as they are stored" in status.stdout
    assert "3 EMAIL, 3 NAME, 3 PHONE" in status.stdout
    assert "Ottilie" not in status.stdout


def test_what_would_be_concealed_is_shown_and_nothing_kept(terminal: Terminal) -> None:
    file = terminal.home / "rows.json"
    file.write_text('{"customer": {"name": "Ada King"}, "note": "ada@example.org"}')

    of_file = terminal.program("check", str(file))
    of_text = terminal.program("check", "-", stdin="mail ada@example.org, card 4111111111111111")

    assert '"[NAME_1]"' in of_file.stdout
    assert "1 EMAIL, 1 NAME would be concealed" in of_file.stderr
    assert of_text.stdout == "mail [EMAIL_1], card [CARD_1]\n"
    assert "as it is now" not in of_file.stderr
    assert not (terminal.home / "data" / "vaults.db").exists()


def test_where_privacy_is_off_check_and_status_say_so_and_how_to_switch_it_on(
    terminal: Terminal,
) -> None:
    path = terminal.home / "config" / "config.toml"
    path.write_text("")
    switch = f"Privacy is off. `toolfold privacy on` switches it on (in {path})."

    checked = terminal.program("check", "--text", "mail ada@example.org")
    as_json = json.loads(terminal.program("check", "--json", "--text", "x").stdout)
    status = terminal.program("status")
    path.write_text('[servers.crm]\nprivacy = "on"\n')
    of_one = terminal.program("status")

    assert f"Models see this text unchanged now. {switch}" in checked.stderr
    assert as_json["mode"] == "off"
    assert status.stdout.startswith(switch)
    assert of_one.stdout.startswith(
        "Privacy is off, except for answers of crm. `toolfold privacy on`"
    )


async def test_what_is_forgotten_is_revealed_to_nobody_and_numbers_are_not_given_again(
    filled: Terminal, running: MakeApp, tmp_path: Path
) -> None:
    refused = filled.program("forget")
    servers = {"crm": test_server("people", tmp_path / "crm.jsonl")}
    async with running(servers, toml=ON) as toolfold:
        before = await toolfold.run("import crm\ncrm.echo(value='[EMAIL_1]')['value']")
        forgotten = filled.program("forget", "--yes")
        after = await toolfold.run("import crm\ncrm.echo(value='[EMAIL_1]')['value']")
        anew = await toolfold.run("import crm\ncrm.list_customers()[0]['email']")

    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert before.value == "[EMAIL_1]"
    assert "9 values forgotten" in forgotten.stdout
    assert "Unknown placeholders were sent unchanged" in after.text
    assert anew.value not in ("[EMAIL_1]", "[EMAIL_2]", "[EMAIL_3]")
    assert "@" not in str(anew.value)


def test_vaults_that_nobody_used_are_emptied(terminal: Terminal) -> None:
    vaults = Vaults(terminal.home / "data")
    vaults.vault("old").conceal({"email": "ada@example.org"})
    vaults.close()

    assert "1 vault emptied" in terminal.program("forget", "--unused-days", "0").stdout
    assert "0 vaults emptied" in terminal.program("forget", "--unused-days", "0").stdout


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[privacy]\nmode = "on"\n'),
        ("port = 1 # mine\n", 'port = 1 # mine\n\n[privacy]\nmode = "on"\n'),
        ("[privacy]\n# why\nmode = 'off' # so\n", '[privacy]\n# why\nmode = "on" # so\n'),
        (
            '[privacy]\n[privacy.fields]\nmode = "X"\n',
            '[privacy]\nmode = "on"\n[privacy.fields]\nmode = "X"\n',
        ),
        ('privacy.mode = "off"\n', None),
        ('privacy = {mode = "off"}\n', None),
    ],
    ids=["empty", "no table", "a mode", "a table below", "dotted", "inline"],
)
def test_privacy_is_switched_on_in_a_file_and_all_else_in_it_stays(
    before: str, after: str | None
) -> None:
    assert with_mode(before, "on") == after
