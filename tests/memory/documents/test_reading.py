"""The process that reads: it dies, hangs or runs out of memory alone."""

import os
import signal
import zlib
from pathlib import Path

import pytest
from made_files import make_docx, make_pdf

from toolfold.memory.documents.kinds import Unreadable
from toolfold.memory.documents.paths import read_file
from toolfold.memory.documents.reader_process import ReaderProcess


def pid_of(reading: ReaderProcess) -> int:
    assert reading._process is not None
    return reading._process.pid


async def read(reading: ReaderProcess, content: bytes, name: str = "a.md") -> list[str]:
    _, _, chunks = await reading.read(content, name)
    return [chunk.content for chunk in chunks]


async def test_one_process_reads_many_files() -> None:
    async with ReaderProcess.running() as reading:
        assert await read(reading, b"# one\n\ntext") == ["one\ntext"]
        first = pid_of(reading)
        assert await read(reading, make_pdf([["page"]]), "a.pdf") == ["page"]
        assert pid_of(reading) == first
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


async def test_a_process_that_was_killed_between_files_is_started_again() -> None:
    async with ReaderProcess.running() as reading:
        await read(reading, b"one")
        process = reading._process
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()

        assert await read(reading, b"two") == ["two"]


async def test_a_process_that_hangs_costs_one_file() -> None:
    async with ReaderProcess.running() as reading:
        await read(reading, b"one")
        reading._timeout_s = 0.2
        os.kill(pid_of(reading), signal.SIGSTOP)
        with pytest.raises(Unreadable, match="longer than"):
            await read(reading, b"two")

        reading._timeout_s = 60
        assert await read(reading, b"three") == ["three"]


@pytest.mark.soak
async def test_a_page_that_unpacks_to_a_gigabyte_costs_one_file() -> None:
    bomb = make_pdf([["x"]])
    inner = zlib.compress(b" " * 2**30, 1)
    stream = b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(inner), inner)
    start, end = bomb.index(b"<< /Length"), bomb.index(b"endstream") + len(b"endstream")
    async with ReaderProcess.running() as reading:
        with pytest.raises(Unreadable):
            await read(reading, bomb[:start] + stream + bomb[end:], "bomb.pdf")

        assert await read(reading, b"still here") == ["still here"]


async def test_an_archive_that_unpacks_to_too_much_costs_one_file() -> None:
    async with ReaderProcess.running() as reading:
        with pytest.raises(Unreadable, match="unpacks"):
            await read(reading, make_docx(" " * (129 * 2**20)), "bomb.docx")

        assert await read(reading, b"still here") == ["still here"]


@pytest.mark.parametrize("megabytes", [1, pytest.param(10, marks=pytest.mark.soak)])
async def test_a_line_of_many_megabytes_is_read(megabytes: int) -> None:
    content = b"<html><p>" + b"x" * 500_000 * megabytes + b" word" * 100_000 * megabytes
    async with ReaderProcess.running() as reading:
        chunks = await read(reading, content, "a.html")

    assert sum(chunk.count("x") for chunk in chunks) == 500_000 * megabytes
    assert sum(chunk.count("word") for chunk in chunks) == 100_000 * megabytes


async def test_the_process_gets_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "hunter2")
    async with ReaderProcess.running() as reading:
        await read(reading, b"one")
        seen = Path(f"/proc/{pid_of(reading)}/environ")
        if not seen.exists():
            pytest.skip("this system does not show the environment of processes")
        assert b"hunter2" not in seen.read_bytes()


@pytest.mark.parametrize(
    "answer",
    [
        b"no json",
        b"[]",
        b'{"kind": "exe", "title": "", "pages": null, "chunks": [["x", [], null]]}',
        b'{"kind": "pdf", "title": "", "pages": null, "chunks": []}',
        b'{"kind": "pdf", "title": "", "pages": "many", "chunks": [["x", [], null]]}',
        b'{"kind": "pdf", "title": 3, "pages": 1, "chunks": [["x", [], 1]]}',
        b'{"kind": "pdf", "title": "", "pages": 1, "chunks": [["%s", [], 1]]}' % (b"x" * 9000),
        b'{"kind": "pdf", "title": "", "pages": 1, "chunks": [["\\ud800", [], 1]]}',
        b'{"kind": "pdf", "title": "", "pages": 1, "chunks": [["x", [], 1]]',
    ],
)
async def test_nothing_that_the_process_says_is_trusted(answer: bytes) -> None:
    from toolfold.memory.documents.reader_process import _checked

    with pytest.raises(Unreadable):
        _checked(answer)


def test_a_file_is_not_read_through_a_link_that_was_put_in_its_way(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_text("secret")
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "a.md").write_text("open")
    assert read_file(root / "sub" / "a.md")[0] == b"open"

    (root / "sub" / "a.md").unlink()
    (root / "sub" / "a.md").symlink_to(outside / "a.md")
    with pytest.raises(Unreadable):
        read_file(root / "sub" / "a.md")

    (root / "sub" / "a.md").unlink()
    (root / "sub").rmdir()
    (root / "sub").symlink_to(outside)
    with pytest.raises(Unreadable):
        read_file(root / "sub" / "a.md")
