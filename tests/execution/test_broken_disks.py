"""Disks that are full, read-only or broken: nothing changes anything without its row."""

import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from execution.test_border import Doors, doors, text_of, verified
from execution.test_border_matrix import CELLS, all_doors
from support import ROOT, MakeApp, python, test_server, write_config

from toolfold.errors import ToolfoldError


@contextmanager
def small_disk(at: Path) -> Iterator[None]:
    """Put a disk of 4 MB at a place; skip where that cannot be done."""
    at.mkdir(parents=True, exist_ok=True)
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(at)],
        capture_output=True,
        check=False,
    )
    if not mounted or mounted.returncode:
        pytest.skip("a disk of its own cannot be mounted here: that needs root")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True)


def fill(at: Path) -> None:
    """Leave no byte free."""
    with (at / "filler").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)


def make_read_only(at: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(at)], check=True)


async def change(bank: Doors) -> list[str]:
    """Change something by every door; return what each said."""
    said = []
    for act in (
        lambda: bank.run("import bank\nbank.transfer(to='QX')"),
        lambda: bank.run("import memory\nmemory.store('a note')"),
        lambda: bank.pinned("transfer", to="QX"),
        lambda: bank.rest("bank.transfer", to="QX"),
        lambda: bank.http.post("/memory/notes", json={"content": "another note"}),
        lambda: bank.http.post("/execute", json={"code": "import bank\nbank.transfer(to='QX')"}),
    ):
        try:
            answer: Any = await act()
        except ToolfoldError as error:
            said.append(str(error))
        else:
            is_result = isinstance(answer, types.CallToolResult)
            said.append(text_of(answer) if is_result else answer.text)
    return said


def transfers(bank: Doors) -> int:
    return sum(each.get("name") == "transfer" for each in bank.arrived())


async def test_on_a_disk_that_is_really_full_nothing_is_changed(
    running: MakeApp, tmp_path: Path, home: Path
) -> None:
    with small_disk(home / "data"):
        async with doors(running, tmp_path, home) as bank:
            before = await bank.run("import bank\nbank.transfer(to='QX')")
            assert before.success, before.text
            fill(home / "data")
            said = await change(bank)
            read = await bank.pinned("balance", account="1")
            (home / "data" / "filler").unlink()
            after = await bank.run("import bank\nbank.transfer(to='QX')")
            rows = bank.rows("SELECT count(*) FROM calls WHERE tool = 'bank.transfer'")[0][0]

    assert transfers(bank) == 2, said
    assert all("was not called" in each or "cannot be" in each for each in said), said
    assert not read.is_error
    assert after.success, after.text
    assert rows >= 2


@pytest.mark.parametrize("how", ["no database", "a broken page", "a directory"])
async def test_with_a_journal_that_is_broken_nothing_is_changed_without_its_row(
    how: str, running: MakeApp, tmp_path: Path, home: Path
) -> None:
    path = home / "data" / "runs.db"
    async with doors(running, tmp_path, home) as bank:
        assert (await bank.run("import bank\nbank.transfer(to='QX')")).success
    for each in (path.with_name("runs.db-wal"), path.with_name("runs.db-shm")):
        each.unlink(missing_ok=True)
    content = path.read_bytes()
    match how:
        case "no database":
            path.write_bytes(os.urandom(len(content)))
        case "a broken page":
            path.write_bytes(content[:4096] + os.urandom(len(content) - 4096))
        case "a directory":
            path.unlink()
            path.mkdir()
    async with doors(running, tmp_path, home) as bank:
        said = await change(bank)
        since = transfers(bank) - 1
        rows = [] if how == "a directory" else bank.rows("SELECT tool FROM calls")

    if how == "a directory":
        assert since == 0, said
        assert all("was not called" in each for each in said), said
        return
    aside = path.with_name("runs.db.broken-1")
    assert aside.exists()  # `toolfold runs verify` names it and fails until it is moved away
    assert since == rows.count(("bank.transfer",)) == 4
    assert rows.count(("memory.store",)) == 2


async def test_on_a_disk_that_is_read_only_nothing_is_changed(
    running: MakeApp, tmp_path: Path, home: Path
) -> None:
    with small_disk(home / "data"):
        async with doors(running, tmp_path, home) as bank:
            assert (await bank.run("import bank\nbank.transfer(to='QX')")).success
        make_read_only(home / "data")
        async with doors(running, tmp_path, home) as bank:
            said = await change(bank)

    assert transfers(bank) == 1, said
    assert all("was not called" in each for each in said), said


@pytest.mark.parametrize("how", ["full", "read-only", "no journal"])
async def test_with_a_broken_disk_every_door_reads_on_and_changes_nothing(
    how: str, running: MakeApp, tmp_path: Path, home: Path
) -> None:
    with small_disk(home / "data"):
        async with every_door(running, tmp_path, home) as do:
            before = {cell: await do(cell) for cell in CELLS}
            made = transfers(do.bank)
        kept = remembered(home)
        damage(home / "data", how)
        async with every_door(running, tmp_path, home) as do:
            if how == "full":
                fill(home / "data")
            after = {cell: await do(cell) for cell in CELLS}
            made_since = transfers(do.bank) - made
            if how == "full":
                (home / "data" / "filler").unlink()
                await do(("mcp", "tool"))  # so that something is written again
        kept_since = remembered(home)
        gaps = verified(home).gaps if how == "full" else []

    assert set(before.values()) == {"done"}
    wanted = {cell: "unrecorded" if each.changes else "done" for cell, each in CELLS.items()}
    if how == "read-only":  # a program has a session, which cannot be kept either
        programs = [after.pop(cell) for cell in CELLS if cell[0] == "code"]
        assert all(each.startswith("failed: Sessions cannot be kept") for each in programs)
        wanted = {cell: each for cell, each in wanted.items() if cell[0] != "code"}
    assert after == wanted
    assert made_since == 0
    assert kept_since == kept
    assert len(gaps) == (how == "full")  # what was read meanwhile


@pytest.mark.parametrize("how", ["no database", "a broken page"])
async def test_with_a_journal_that_is_broken_every_door_has_its_rows_in_another(
    how: str, running: MakeApp, tmp_path: Path, home: Path
) -> None:
    path = home / "data" / "runs.db"
    async with every_door(running, tmp_path, home) as do:
        await do(("code", "tool"))
    for each in (path.with_name("runs.db-wal"), path.with_name("runs.db-shm")):
        each.unlink(missing_ok=True)
    content = path.read_bytes()
    intact = content[:4096] if how == "a broken page" else b""
    path.write_bytes(intact + os.urandom(len(content) - len(intact)))

    async with every_door(running, tmp_path, home) as do:
        found = {cell: await do(cell) for cell in CELLS}
        do.bank.toolfold.app.shared.journal.flush()
        rows = [tool for (tool,) in do.bank.rows("SELECT tool FROM calls WHERE outcome = 'ok'")]

    assert path.with_name("runs.db.broken-1").exists()
    assert set(found.values()) == {"done"}
    assert sorted(rows) == sorted(call for cell in CELLS.values() for call in cell.calls)
    assert verified(home).fault is None


def damage(data: Path, how: str) -> None:
    """Do what must be done before the next start."""
    if how == "read-only":
        make_read_only(data)
    if how == "no journal":
        for each in data.glob("runs.db*"):
            each.unlink()
        (data / "runs.db").mkdir()


def every_door(running: MakeApp, tmp_path: Path, home: Path) -> Any:
    return all_doors(running, tmp_path, home, "auto", "no rule", "nothing")


def remembered(home: Path) -> tuple[int, int]:
    """Return how many notes and events a store has that nobody has open."""
    address = f"file:{home}/data/memory.db?immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as store:
        return (
            store.execute("SELECT count(*) FROM notes").fetchone()[0],
            store.execute("SELECT count(*) FROM events").fetchone()[0],
        )


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "how",
    [
        "code", "pinned", "rest", "note", "own script", "memory verb", "script verb", "hook verb",
        "terminal verb",
    ],
)  # fmt: skip
async def test_what_was_under_way_when_the_process_was_killed_has_its_row(
    how: str, when: str, tmp_path: Path
) -> None:
    intents, begun = await killed(how, when, tmp_path)

    is_transfer = how in {"code", "pinned", "rest"}
    assert intents == [("bank.transfer" if is_transfer else "memory.store",)]
    assert begun == 1
    assert (tmp_path / "bank.jsonl").exists() == (when == "after" and is_transfer)


@pytest.mark.parametrize("how", ["mcp resource", "mcp prompt", "mcp completion"])
async def test_what_was_read_when_the_process_was_killed_leaves_nothing_in_doubt(
    how: str, tmp_path: Path
) -> None:
    intents, _ = await killed(how, "before", tmp_path)

    assert intents == []
    assert verified(tmp_path / "home").fault is None


async def killed(how: str, when: str, tmp_path: Path) -> tuple[list[Any], int]:
    """Kill a process between intent and send, or after that; return what its journal has."""
    received = tmp_path / "bank.jsonl"
    write_config(tmp_path / "mcp.json", {"bank": test_server("bank", received)})
    (tmp_path / "home" / "config").mkdir(parents=True)
    (tmp_path / "home" / "config" / "config.toml").write_text('pinned_tools = ["bank.transfer"]\n')
    script = ROOT / "tests" / "execution" / "killed_process.py"

    ended = await anyio.run_process(
        [python(), str(script), str(tmp_path), how, when], check=False, env=dict(os.environ)
    )

    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    with closing(sqlite3.connect(tmp_path / "home" / "data" / "runs.db")) as journal:
        intents = journal.execute("SELECT tool FROM intents").fetchall()
        begun = journal.execute("SELECT count(*) FROM beginnings").fetchone()[0]
    return intents, begun
