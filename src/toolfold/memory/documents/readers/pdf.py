"""Read PDF, with pdfium."""

from itertools import islice
from typing import Final

import pypdfium2 as pdfium  # type: ignore[import-untyped]
import pypdfium2.raw as raw  # type: ignore[import-untyped]

from toolfold.errors import count
from toolfold.memory.documents.kinds import Blocks, DocumentContent, Unreadable

MAX_PAGES: Final = 20_000
_MAX_HEADINGS: Final = 20_000
_END: Final = b"%%EOF"
# The end of a file may be followed by what a transfer added.
_END_BYTES: Final = 4096
# How pdfium writes a hyphen that only parts a word at the end of a line.
_SOFT_HYPHENS: Final = ("\x02\n", "\ufffe\n", "\u00ad\n")


def read_pdf(content: bytes) -> DocumentContent:
    """Return the text of each page, under the headings of the outline if there is one.

    Raises:
        Unreadable: It is encrypted or damaged, truncated, or has no text.
    """
    if _END not in content[-_END_BYTES:]:
        raise Unreadable("The file is truncated: only a part of it is there.")
    try:
        document = pdfium.PdfDocument(content)
        return _read(document)
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise Unreadable("It is encrypted. Save it without a password.") from error
        raise Unreadable(f"It is damaged: {error}") from error


def _read(document: "pdfium.PdfDocument") -> DocumentContent:
    pages = len(document)
    if pages > MAX_PAGES:
        raise Unreadable(
            f"It has {count(pages, 'page')}, and {MAX_PAGES:,} is the limit. Split it."
        )
    outline = _outline(document)
    blocks = Blocks()
    for number in range(pages):
        _add_page(blocks, _page_text(document, number), outline.get(number, []), number + 1)
    if not any(not block.level for block in blocks.found):
        raise Unreadable(f"No text is on its {count(pages, 'page')}: they may be pictures of text.")
    title = document.get_metadata_value("Title")
    return DocumentContent(blocks.found, " ".join(str(title).split()), pages)


def _page_text(document: "pdfium.PdfDocument", number: int) -> str:
    page = document[number]
    try:
        text_page = page.get_textpage()
        text: str = text_page.get_text_bounded()
        text_page.close()
    finally:
        page.close()
    text = text.replace("\r\n", "\n")
    for hyphen in _SOFT_HYPHENS:
        text = text.replace(hyphen, "")
    return text


def _outline(document: "pdfium.PdfDocument") -> dict[int, list[tuple[int, str]]]:
    """Return level and title of what the outline says begins on each page."""
    found: dict[int, list[tuple[int, str]]] = {}
    for entry in islice(document.get_toc(max_depth=6), _MAX_HEADINGS):
        target = entry.get_dest()
        number = None if target is None else target.get_index()
        title = " ".join(entry.get_title().split())
        if number is not None and title:
            found.setdefault(number, []).append((entry.level + 1, title))
    return found


def _add_page(blocks: Blocks, text: str, headings: list[tuple[int, str]], page: int) -> None:
    """Put headings where the page has a line that says the same, else before its text."""
    lines = text.split("\n")
    titles = {_plain(title) for _, title in headings}
    places = {_plain(line): place for place, line in enumerate(lines) if _plain(line) in titles}
    start = 0
    for level, title in headings:
        place = places.get(_plain(title), -1)
        if place >= start:
            blocks.add("\n".join(lines[start:place]), page=page)
            start = place + 1
        blocks.add(title, level=level, page=page)
    blocks.add("\n".join(lines[start:]), page=page)


def _plain(line: str) -> str:
    return " ".join(line.split()).casefold()
