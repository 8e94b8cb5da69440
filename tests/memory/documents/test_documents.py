"""Files into notes: what is read, what is kept in step, what is named as unreadable."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from fakes import FakeEmbedder
from made_files import make_archive, make_docx, make_pdf, paragraph
from memories import Clock
from running import Library, running_library

from toolfold.errors import BadInput, NotFound
from toolfold.memory.documents import paths
from toolfold.memory.documents.models import Ingested

LONG_AGO_S = 1_700_000_000


def write(path: Path, content: str | bytes, *, age_s: int = LONG_AGO_S) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    os.utime(path, (age_s, age_s))
    return path


def sections(*names: str) -> str:
    return "".join(f"# {name}\n\nThis part is about {name} and nothing else.\n\n" for name in names)


async def contents(library: Library) -> list[str]:
    """Return what all chunks say, by position."""
    found = await library.memory.list(limit=1000, memory_type="document")
    notes = [await library.memory.get(each.hash) for each in found.memories]
    return [note.content for note in sorted(notes, key=lambda note: note.position or 0)]


async def hashes(library: Library) -> set[str]:
    found = await library.memory.list(limit=1000, memory_type="document")
    return {each.hash for each in found.memories}


def reasons(found: Ingested) -> dict[str, str]:
    return {Path(each.path).name: each.reason for each in found.failures}


async def test_a_file_becomes_notes_that_are_found_and_say_where_they_are_from(
    library: Library, folder: Path
) -> None:
    path = write(folder / "guide.md", "# Guide\n\n## Rivers\n\nThe Danube passes ten countries.\n")

    found = await library.documents.ingest(str(path), tags="geo")

    assert (found.added, found.notes, found.failures) == (1, 1, ())
    [hit] = (await library.memory.search("which river passes countries")).memories
    note = await library.memory.get(hit.hash)
    assert (note.type, note.source, note.tags) == ("document", str(path), ("geo",))
    assert note.metadata == {"title": "Guide", "heading": ["Guide", "Rivers"]}
    assert note.content == "Guide › Rivers\nThe Danube passes ten countries."  # noqa: RUF001


async def test_pages_of_a_pdf_are_told(library: Library, folder: Path) -> None:
    pages = [["Nothing here."], ["The treasure lies under the oak."]]
    write(folder / "map.pdf", make_pdf(pages, title="The map", outline=[("Oak", 1)]))

    await library.documents.ingest(str(folder))

    [hit] = (await library.memory.search("treasure oak", limit=1)).memories
    assert (await library.memory.get(hit.hash)).metadata == {
        "title": "The map",
        "heading": ["Oak"],
        "page": 2,
    }
    [document] = (await library.documents.documents()).documents
    assert (document.kind, document.pages, document.title) == ("pdf", 2, "The map")


async def test_a_folder_is_read_with_its_folders_but_not_what_nobody_wants(
    library: Library, folder: Path
) -> None:
    for name in ("a.md", "deep/er/b.txt", "c.csv", "d.json", "e.html"):
        write(folder / name, '{"x": "word"}' if name == "d.json" else "word of mouth")
    for name in (".hidden.md", ".git/x.md", "node_modules/p/README.md", "env/y.md", "code.py"):
        write(folder / name, "word of mouth")
    write(folder / "env" / "pyvenv.cfg", "")
    (folder / "link.md").symlink_to(folder / "a.md")

    found = await library.documents.ingest(str(folder))

    names = [Path(each.path).name for each in (await library.documents.documents()).documents]
    assert (found.added, found.failures) == (5, ())
    assert sorted(names) == ["a.md", "b.txt", "c.csv", "d.json", "e.html"]


@pytest.mark.parametrize(
    ("pattern", "recursive", "names"),
    [
        ("*.py", True, ["code.py", "inner.py"]),
        ("*.py", False, ["code.py"]),
        ("sub/*.md", True, ["inner.md", "low.md"]),
        ("sub/**/*.md", True, ["inner.md", "low.md"]),
        (None, False, ["a.md"]),
    ],
)
async def test_a_pattern_says_which_files_are_meant(
    library: Library, folder: Path, pattern: str | None, recursive: bool, names: list[str]
) -> None:
    for name in ("a.md", "code.py", "sub/inner.md", "sub/inner.py", "sub/deep/low.md"):
        write(folder / name, f"what {name} says")

    await library.documents.ingest(str(folder), pattern=pattern, recursive=recursive)

    found = [Path(each.path).name for each in (await library.documents.documents()).documents]
    assert sorted(found) == names


async def test_an_unchanged_file_is_not_even_opened(library: Library, folder: Path) -> None:
    path = write(folder / "a.md", "some words here")
    await library.documents.ingest(str(path))
    write(path, "OTHER WORDS HER")  # as long, and as old

    found = await library.documents.ingest(str(path))

    assert (found.added, found.updated, found.unchanged) == (0, 0, 1)
    assert await contents(library) == ["some words here"]


async def test_a_file_that_was_only_touched_is_compared_and_left(
    library: Library, folder: Path, clock: Clock
) -> None:
    path = write(folder / "a.md", "some words here")
    await library.documents.ingest(str(path))
    before = await hashes(library)
    write(path, "some words here", age_s=LONG_AGO_S + 100)

    found = await library.documents.ingest(str(path))

    assert (found.updated, found.unchanged) == (0, 1)
    assert await hashes(library) == before


async def test_a_file_that_changes_twice_within_a_moment_is_still_read_again(
    library: Library, folder: Path, clock: Clock
) -> None:
    path = write(folder / "a.md", "first thing", age_s=int(clock.now))
    await library.documents.ingest(str(path))
    write(path, "other thing", age_s=int(clock.now))  # as long, and at the same time

    assert (await library.documents.ingest(str(path))).updated == 1
    assert await contents(library) == ["other thing"]


async def test_a_changed_file_changes_only_the_notes_of_what_is_different(
    library: Library, folder: Path, tmp_path: Path
) -> None:
    path = write(folder / "a.md", sections("apples", "pears", "plums", "figs"))
    await library.documents.ingest(str(path))
    await library.memory.until_ready()
    before = await hashes(library)
    write(path, sections("quinces", "apples", "plums", "grapes", "figs"), age_s=LONG_AGO_S + 1)

    found = await library.documents.ingest(str(path))

    assert (found.updated, found.notes) == (1, 2)
    said = await contents(library)
    assert [text.split("\n")[0] for text in said] == [
        "quinces",
        "apples",
        "plums",
        "grapes",
        "figs",
    ]
    assert len(before & await hashes(library)) == 3
    assert (await library.memory.search("pears")).total == 0


async def test_notes_that_stay_keep_their_vectors(
    library: Library, folder: Path, tmp_path: Path, embedder: FakeEmbedder
) -> None:
    path = write(folder / "a.md", sections("apples", "pears"))
    await library.documents.ingest(str(path))
    await library.memory.until_ready()
    write(path, sections("plums", "apples", "pears"), age_s=LONG_AGO_S + 1)
    asked: list[str] = []
    embed = embedder.embed
    embedder.embed = lambda texts: (asked.extend(texts), embed(texts))[1]  # type: ignore[method-assign]

    await library.documents.ingest(str(path))
    await library.memory.until_ready()

    assert asked == ["plums\nThis part is about plums and nothing else."]


async def test_tags_that_are_new_are_given_to_a_file_that_is_known(
    library: Library, folder: Path
) -> None:
    path = write(folder / "a.md", "some words here")
    await library.documents.ingest(str(path), tags=["one"])

    await library.documents.ingest(str(path), tags=["two"])
    again = await library.documents.ingest(str(path), tags=["two"])

    [hit] = (await library.memory.search_by_tag(["one", "two"], match="all")).memories
    assert set(hit.tags) == {"one", "two"}
    assert again.unchanged == 1


async def test_what_is_gone_is_named_and_can_be_forgotten(library: Library, folder: Path) -> None:
    path = write(folder / "sub" / "a.md", "some words here")
    write(folder / "b.md", "other words")
    await library.documents.ingest(str(folder))
    path.unlink()

    found = await library.documents.ingest(str(folder))
    assert found.missing == (str(path),)
    assert await library.documents.forget_document(str(path)) == 1

    assert (await library.documents.ingest(str(folder))).missing == ()
    assert await contents(library) == ["other words"]
    with pytest.raises(NotFound):
        await library.documents.forget_document(str(path))


async def test_a_folder_can_be_forgotten_whole_without_its_namesakes(
    library: Library, folder: Path
) -> None:
    for name in ("a/x.md", "a/b/y.md", "a-z/z.md"):
        write(folder / name, f"what {name} says")
    await library.documents.ingest(str(folder))

    assert await library.documents.forget_document(str(folder / "a")) == 2
    assert await contents(library) == ["what a-z/z.md says"]


async def test_what_is_forgotten_can_be_ingested_again(library: Library, folder: Path) -> None:
    path = write(folder / "a.md", "some words here")
    await library.documents.ingest(str(path))
    await library.documents.forget_document(str(path))

    assert (await library.documents.ingest(str(path))).added == 1
    assert await contents(library) == ["some words here"]


async def test_one_bad_file_is_named_with_its_reason_and_the_rest_are_done(
    library: Library, folder: Path
) -> None:
    good = make_pdf([["The good one."]])
    bad = {
        "encrypted.pdf": (make_pdf([["secret"]], password="x"), "encrypted"),
        "truncated.pdf": (good[: len(good) // 2], "only a part of it is there"),
        "scanned.pdf": (make_pdf([[], []]), "pictures"),
        "broken.pdf": (b"%PDF-1.7\nnothing of the kind\n%%EOF", "damaged"),
        "empty.md": (b"  \n", "empty"),
        "picture.md": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "PNG"),
        "sheet.docx": (make_archive({"xl/workbook.xml": "<x/>"}), "spreadsheet"),
        "truncated.docx": (make_docx(paragraph("x"))[:-40], "damaged"),
        "old.docx": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "old Office"),
        "half.json": (b'{"a": [1, 2', "JSON"),
        "blob.txt": (bytes(range(256)) * 8, "neither text"),
    }
    for name, (content, _) in bad.items():
        write(folder / name, content)
    write(folder / "good.pdf", good)
    write(folder / "page.pdf", "<!DOCTYPE html><title>x</title><p>Named PDF, and HTML.</p>")
    write(folder / "report.txt", good.replace(b"good", b"best"))

    found = await library.documents.ingest(str(folder))

    assert (found.added, len(found.failures)) == (3, len(bad))
    for name, (_, word) in bad.items():
        assert word in reasons(found)[name], name
    kinds = {Path(d.path).name: d.kind for d in (await library.documents.documents()).documents}
    assert kinds == {"good.pdf": "pdf", "page.pdf": "html", "report.txt": "pdf"}
    assert "encrypted.pdf" in repr(found)


async def test_a_file_that_became_unreadable_keeps_the_notes_it_had(
    library: Library, folder: Path
) -> None:
    path = write(folder / "a.pdf", make_pdf([["The good one."]]))
    await library.documents.ingest(str(path))
    write(path, b"%PDF-1.7 and no more", age_s=LONG_AGO_S + 1)

    found = await library.documents.ingest(str(path))

    assert len(found.failures) == 1
    assert await contents(library) == ["The good one."]


async def test_progress_is_told_for_every_file(library: Library, folder: Path) -> None:
    for number in range(3):
        write(folder / f"{number}.md", f"file {number}")
    told: list[tuple[int, int, str]] = []

    await library.documents.ingest(str(folder), progress=lambda *news: told.append(news))

    assert told == [
        *((number, 3, str(folder / f"{number}.md")) for number in range(3)),
        (3, 3, ""),
    ]


async def test_namespaces_do_not_share_documents(
    tmp_path: Path, folder: Path, embedder: FakeEmbedder
) -> None:
    path = write(folder / "a.md", "some words here")
    async with running_library(tmp_path / "data", embedder, namespace="one") as one:
        await one.documents.ingest(str(path))
    async with running_library(tmp_path / "data", embedder, namespace="two") as two:
        assert (await two.documents.documents()).total == 0
        with pytest.raises(NotFound):
            await two.documents.forget_document(str(path))
        assert (await two.documents.ingest(str(path))).added == 1


async def test_documents_survive_and_nothing_is_left_behind_in_tables(
    tmp_path: Path, folder: Path, embedder: FakeEmbedder
) -> None:
    path = write(folder / "a.md", sections("apples", "pears"))
    async with running_library(tmp_path / "data", embedder) as library:
        await library.documents.ingest(str(path))
        await library.documents.forget_document(str(path))
    with closing(sqlite3.connect(tmp_path / "data" / "memory.db")) as connection:
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (0,)
        assert connection.execute("SELECT notes FROM namespaces").fetchone() == (0,)


@pytest.mark.parametrize("path", ["", "relative.md", "a\0b", 3])
async def test_a_path_that_is_none_is_refused(library: Library, path: str) -> None:
    with pytest.raises(BadInput):
        await library.documents.ingest(path)


async def test_a_path_to_nothing_is_named(library: Library, folder: Path) -> None:
    with pytest.raises(NotFound, match=r"gone\.md"):
        await library.documents.ingest(str(folder / "gone.md"))


async def test_a_file_that_is_too_large_is_named_without_being_read(
    library: Library, folder: Path
) -> None:
    path = folder / "huge.txt"
    with path.open("wb") as file:
        file.truncate(paths.MAX_FILE_BYTES + 1)
    write(folder / "small.txt", "small enough")

    found = await library.documents.ingest(str(folder))

    assert found.added == 1
    assert "is the limit" in reasons(found)["huge.txt"]


async def test_a_pipe_is_no_document_and_holds_nobody_up(library: Library, folder: Path) -> None:
    os.mkfifo(folder / "pipe.md")

    found = await library.documents.ingest(str(folder))

    assert "not a regular file" in reasons(found)["pipe.md"]


async def test_a_name_that_is_no_text_is_named_all_the_same(library: Library, folder: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.md")).write_text("coffee")

    found = await library.documents.ingest(str(folder))

    [failure] = found.failures
    assert "UTF-8" in failure.reason
    assert failure.path.endswith(r"caf\udce9.md")


async def test_a_document_whose_notes_were_deleted_is_read_again(
    library: Library, folder: Path
) -> None:
    path = write(folder / "a.md", "# Llamas\n\nThey hum.")
    await library.documents.ingest(str(path), tags="llama")
    await library.memory.delete_by_tag("llama")

    again = await library.documents.ingest(str(path), tags="llama")

    assert (again.added, again.unchanged) == (1, 0)
    assert (await library.memory.search("llamas")).total == 1
