"""What each reader makes of a file, and what it says of one that it cannot read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_files import DOCUMENT, WORDS, make_archive, make_docx, make_pdf, paragraph, table
from support import examples

from toolfold.memory.documents.kinds import (
    MAX_TEXT_CHARS,
    Block,
    DocumentContent,
    Reader,
    Unreadable,
    decoded,
    tell_kind,
)
from toolfold.memory.documents.readers import docx
from toolfold.memory.documents.readers.docx import read_docx
from toolfold.memory.documents.readers.markup import read_html
from toolfold.memory.documents.readers.pdf import read_pdf
from toolfold.memory.documents.readers.tables import read_csv, read_json
from toolfold.memory.documents.readers.text import read_markdown, read_text

PDF = make_pdf([["Hello."]])
ENTITIES = '<!DOCTYPE x [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><x>&c;</x>'
DOCX = make_docx(paragraph("Hello."))


READERS: dict[str, Reader] = {
    "pdf": read_pdf,
    "docx": read_docx,
    "html": read_html,
    "markdown": read_markdown,
    "text": read_text,
    "csv": read_csv,
    "json": read_json,
}


def said(read: DocumentContent) -> list[tuple[int, str]]:
    return [(block.level, block.text) for block in read.blocks]


@pytest.mark.parametrize(
    ("content", "name", "kind"),
    [
        (PDF, "a.txt", "pdf"),
        (b"junk first\n" + PDF, "a", "pdf"),
        (DOCX, "a.pdf", "docx"),
        (b"  <!-- x --><!DOCTYPE HTML><p>x", "a.md", "html"),
        (b'<?xml version="1.0"?>\n<html xmlns="x">', "a.txt", "html"),
        (b"# a", "a.MD", "markdown"),
        (b"<p>a fragment</p>", "a.html", "html"),
        (b'{"a": 1}', "a.txt", "json"),
        (b"[1] is the first reference [2]", "a.txt", "text"),
        (b"[link](there) {and} [1]", "a.md", "markdown"),
        (b"a,b\n1,2", "a.csv", "csv"),
        (b"no words about what it is", "README", "text"),
        (b"just text", "a.pdf", "text"),
        (b"MZ is how this text begins, and no program.", "a.txt", "text"),
        ("ünïcode".encode("utf-16"), "a.txt", "text"),
    ],
)
def test_the_kind_is_told_by_content_and_then_by_name(content: bytes, name: str, kind: str) -> None:
    assert tell_kind(content, name) == kind


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b" \n\t", "empty"),
        (b"\x89PNG\r\n\x1a\n", "PNG"),
        (b"\x7fELF\x02\x01", "program"),
        (b"MZ\x90\0\x03\0", "program"),
        (b"\x1f\x8b\x08\0", "gzip"),
        (b"SQLite format 3\0rest", "SQLite"),
        (make_archive({"x.txt": "y"}), "ZIP"),
        (make_archive({"ppt/presentation.xml": "y"}), "presentation"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "encrypted"),
        (bytes(range(32)) * 20, "neither"),
    ],
)
def test_what_is_no_document_is_called_by_its_name(content: bytes, word: str) -> None:
    with pytest.raises(Unreadable, match=word):
        tell_kind(content, "a.md")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("größer".encode(), "größer"),
        ("größer".encode("utf-8-sig"), "größer"),
        ("größer".encode("utf-16"), "größer"),
        ("größer".encode("cp1252"), "größer"),
        ("größer, weiß, süß".encode()[:-1], "größer, weiß, sü\ufffd"),
        ("zu süß".encode("cp1252"), "zu süß"),
    ],
)
def test_text_is_read_in_the_encoding_that_it_has(content: bytes, text: str) -> None:
    assert decoded(content) == text


def test_markdown_headings_are_those_outside_of_code() -> None:
    found = read_markdown(
        b"---\ntitle: 'The guide'\n---\n"
        b"# One #\ntext\nmore\n\n```sh\n# no heading\n\n## nor this\n```\n"
        b"Two\n---\n\n- item\n---\n| a |\n|---|\n### Three\n#hashtag\n"
    )

    assert found.title == "The guide"
    assert said(found) == [
        (0, "title: 'The guide'"),
        (1, "One"),
        (0, "text\nmore"),
        (0, "```sh\n# no heading\n\n## nor this\n```"),
        (2, "Two"),
        (0, "- item\n---\n| a |\n|---|"),
        (3, "Three"),
        (0, "#hashtag"),
    ]


def test_text_has_pages_and_underlined_headings() -> None:
    found = read_text(b"Title\n=====\n\nText.\n\nPart\n----\nMore.\n\fNext page, a dash:\n-\n")

    assert found.pages == 2
    assert found.blocks == [
        Block("Title", 1, 1),
        Block("Text.", 0, 1),
        Block("Part", 2, 1),
        Block("More.", 0, 1),
        Block("Next page, a dash:\n-", 0, 2),
    ]


def test_html_is_read_as_it_is_shown() -> None:
    found = read_html(
        b"<html><head><title> A\n page </title><style>p {}</style></head><body>"
        b"<h1>Top</h1><p>Some <b>bold</b>\n  text &amp; more<br>line<script>no()</script></p>"
        b"<ul><li>one<li>two</ul><table><tr><th>k<th>v<tr><td>a<td>1</table>"
        b"<pre>x  =\n  1</pre><noscript>no</noscript>tail"
    )

    assert found.title == "A page"
    assert said(found) == [
        (1, "Top"),
        (0, "Some bold text & more\nline"),
        (0, "- one\n"),
        (0, "- two\n"),
        (0, "k | v\n"),
        (0, "a | 1\n"),
        (0, "x  =\n  1"),
        (0, "tail"),
    ]


def test_html_says_in_which_encoding_it_is() -> None:
    page = '<html><meta charset="windows-1251"><body>Привет'.encode("cp1251")

    assert said(read_html(page)) == [(0, "Привет")]


def test_docx_headings_are_known_in_any_language_and_rows_stay_together() -> None:
    found = read_docx(
        make_docx(
            paragraph("Bericht", "berschrift1")
            + paragraph("Anfang.")
            + paragraph("Zahlen", "berschrift2")
            + table([["Jahr", "Wert"], ["2026", "7 & 8"]])
            + paragraph("Ende", "Heading1"),
            docProps__core_xml='<p xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>T</dc:title></p>',
            word__footnotes_xml=DOCUMENT % (WORDS, paragraph("A note.")),
        )
    )

    assert found.title == "T"
    assert said(found) == [
        (1, "Bericht"),
        (0, "Anfang."),
        (2, "Zahlen"),
        (0, "Jahr | Wert\n"),
        (0, "2026 | 7 & 8\n"),
        (1, "Ende"),
        (0, "A note."),
    ]


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (DOCX[:-30], "damaged"),
        (make_archive({"word/document.xml": "<w:document"}), "damaged"),
        (
            make_archive({"word/document.xml": ENTITIES}),
            "entities",
        ),
    ],
)
def test_docx_that_is_broken_or_dangerous_is_refused(content: bytes, word: str) -> None:
    with pytest.raises(Unreadable, match=word):
        read_docx(content)


def test_a_docx_that_unpacks_to_more_than_any_document_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(docx, "MAX_PART_BYTES", 100_000)

    with pytest.raises(Unreadable, match="unpacks"):
        read_docx(make_docx(" " * 200_000))


def test_a_pdf_is_read_page_by_page_under_its_outline() -> None:
    pages = [["Before.", "First part", "Of the first."], ["Of the second."]]
    found = read_pdf(make_pdf(pages, title="T", outline=[("First part", 0), ("Second", 1)]))

    assert (found.title, found.pages) == ("T", 2)
    assert found.blocks == [
        Block("Before.", 0, 1),
        Block("First part", 1, 1),
        Block("Of the first.", 0, 1),
        Block("Second", 1, 2),
        Block("Of the second.", 0, 2),
    ]


def test_a_row_of_csv_says_the_names_of_its_columns() -> None:
    found = read_csv(b'name;note\nAda;"two\nlines"\n;\nBob\nEve;x;extra\n')

    assert said(found) == [
        (0, "name: Ada; note: two\nlines\n"),
        (0, "name: Bob\n"),
        (0, "name: Eve; note: x; extra\n"),
    ]


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        (b"only,names", ["only; names"]),
        (b"a\tb\n1\t2", ["a: 1; b: 2\n"]),
        (b'a,b\n"never closed,2', ["a: never closed,2\n"]),
        (b"\xef\xbb\xbfa,b\r\n1,2\r\n", ["a: 1; b: 2\n"]),
    ],
)
def test_odd_csv_is_read_as_well_as_it_can_be(content: bytes, texts: list[str]) -> None:
    assert [text for _, text in said(read_csv(content))] == texts


def test_json_values_are_said_with_the_way_to_them() -> None:
    found = read_json(
        b'{"a": {"b": [1.50, null, true]}, "c": "", "d": {}, "n": 12345678901234567890}'
    )

    assert said(found) == [
        (0, "a.b[0]: 1.50\na.b[1]: null\na.b[2]: true\nc: \nd: {}\nn: 12345678901234567890\n")
    ]


def test_elements_and_lines_of_json_are_blocks_of_their_own() -> None:
    assert len(read_json(b'[{"a": 1}, {"a": 2}]').blocks) == 2
    assert len(read_json(b'{"a": 1}\n{"a": 2}\n').blocks) == 2


@pytest.mark.parametrize("content", [b'{"a": ', b"[" * 100_000, b'{"a": 1}\nnot json', b"nope"])
def test_what_is_not_json_is_refused(content: bytes) -> None:
    with pytest.raises(Unreadable, match="not JSON"):
        read_json(content)


def test_a_document_with_too_much_text_is_refused() -> None:
    with pytest.raises(Unreadable, match="characters"):
        read_text(b"x" * (MAX_TEXT_CHARS + 1))


@examples(200)
@given(
    st.binary(max_size=400),
    st.sampled_from([b"", b"<html>", b"%PDF-1.4", b"PK\x03\x04word/document.xml", b"{", b"# "]),
    st.sampled_from(["a.md", "a.html", "a.csv", "a.json", "a.txt", "a.docx", "a"]),
)
def test_no_bytes_make_a_reader_fail_in_another_way(content: bytes, head: bytes, name: str) -> None:
    try:
        kind = tell_kind(head + content, name)
        READERS[kind](head + content)
    except Unreadable:
        pass
