"""Tell what a file is, and what is read from it. Standard library only."""

import codecs
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final, Literal, NamedTuple, TypeAlias

DocumentKind: TypeAlias = Literal["pdf", "docx", "html", "markdown", "text", "csv", "json"]

MAX_TEXT_CHARS: Final = 20_000_000
"""Of one document. More would take a quarter of an hour to embed."""

MAX_HEADING_CHARS: Final = 200
"""What is longer is text, whatever the file says that it is."""


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a row, a list item, or a heading."""

    text: str
    """With a line break at its end, it is followed by the next without a blank line."""

    level: int = 0
    """Of a heading, from 1 for the highest; 0 for text."""

    page: int | None = None
    """From 1, where the file has pages."""


class DocumentContent(NamedTuple):
    """All that a file says, in order."""

    blocks: list[Block]
    title: str = ""
    pages: int | None = None


Reader: TypeAlias = Callable[[bytes], DocumentContent]


class Unreadable(Exception):
    """Why nothing can be read from a file: one sentence, and what to do if there is something."""


class Blocks:
    """Gathers blocks within what a document may hold."""

    def __init__(self) -> None:
        self.found: list[Block] = []
        self._chars = 0

    def add(self, text: str, *, level: int = 0, page: int | None = None) -> None:
        """Keep a block, unless it is blank.

        Raises:
            Unreadable: The document holds too much text.
        """
        text = readable(text)
        self._chars += len(text)
        if self._chars > MAX_TEXT_CHARS:
            raise Unreadable(
                f"It holds more than {MAX_TEXT_CHARS:,} characters of text. Split it into files."
            )
        if not text.strip():
            return
        if level and len(heading := " ".join(text.split())) <= MAX_HEADING_CHARS:
            self.found.append(Block(heading, level, page))
        else:
            self.found.append(Block(text, 0, page))


def readable(text: str) -> str:
    """Return a text without what no note can hold: NUL, and halves of surrogate pairs."""
    text = text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


_NAMES: Final[dict[DocumentKind, str]] = {
    "pdf": ".pdf",
    "docx": ".docx",
    "html": ".html .htm .xhtml",
    "markdown": ".md .markdown .mdx",
    "text": ".txt .text .rst .adoc .org .tex",
    "csv": ".csv .tsv",
    "json": ".json .jsonl .ndjson",
}
_EXTENSIONS: Final = {suffix: kind for kind, names in _NAMES.items() for suffix in names.split()}

# A PDF may begin with a few lines of something else; readers look that far for its head.
_PDF_HEAD_BYTES: Final = 1024
_HTML_HEAD: Final = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype html|html)\b", re.IGNORECASE | re.DOTALL
)
_HTML_HEAD_CHARS: Final = 4096
_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_SIGNATURES: Final = {
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"RIFF": "a picture, sound or film",
    b"\x1f\x8b": "a gzip archive",
    b"BZh": "a bzip2 archive",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"\xfd7zXZ": "an xz archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"\x7fELF": "a program",
    b"MZ": "a program",
    b"SQLite format 3\0": "a SQLite database",
    b"%!PS": "PostScript",
    b"{\\rtf": "RTF; save it as DOCX",
}
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# What no text has: control characters but tab, line and page breaks, backspace and escape.
_CONTROLS: Final = bytes({*range(0x20)} - {*b"\b\t\n\v\f\r\x1b"})
_MAX_CONTROLS: Final = 0.01
_MAX_MISTAKES: Final = 0.1


def is_document(name: str) -> bool:
    """Whether the name is one that documents have; what is in a file may say otherwise."""
    return PurePath(name).suffix.lower() in _EXTENSIONS


def tell_kind(content: bytes, name: str) -> DocumentKind:
    """Return what a file is.

    Raises:
        Unreadable: It is empty, or of a kind that is not read; the message says which.
    """
    if not content.strip():
        raise Unreadable("It is empty.")
    if b"%PDF-" in content[:_PDF_HEAD_BYTES]:
        return "pdf"
    if content.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _in_archive(content)
    _refuse_binary(content)
    return _of_text(decoded(content), name)


def decoded(content: bytes) -> str:
    """Return the bytes as text: by their mark, as UTF-8, else as Western European.

    Raises:
        Unreadable: They are no text.
    """
    for mark, encoding in _BOMS:
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    controls = len(content) - len(content.translate(None, _CONTROLS))
    if controls > _MAX_CONTROLS * len(content):
        raise Unreadable("It is neither text nor a supported document.")
    try:
        return content.decode()
    except UnicodeDecodeError:
        text = content.decode("utf-8", "replace")
        return text if _is_mostly_utf8(text) else content.decode("cp1252", "replace")


def _is_mostly_utf8(text: str) -> bool:
    """Whether few characters had to be replaced; the last may be half, of a file that was cut."""
    inner = text.rstrip("\ufffd")
    mistakes = inner.count("\ufffd")
    right = len(inner) - len(inner.encode("ascii", "ignore")) - mistakes
    return right > 0 and mistakes <= right * _MAX_MISTAKES


def _in_archive(content: bytes) -> DocumentKind:
    # Names of entries stand in the archive uncompressed, so nothing need be unpacked to see them.
    if b"word/document.xml" in content:
        return "docx"
    for part, what in (
        (b"xl/workbook", "a spreadsheet. Save its sheets as CSV"),
        (b"ppt/presentation", "a presentation. Save it as PDF"),
        (b"mimetypeapplication/vnd.oasis", "an OpenDocument file. Save it as DOCX or PDF"),
        (b"mimetypeapplication/epub", "an e-book. Save it as HTML or PDF"),
    ):
        if part in content:
            raise Unreadable(f"It is {what}.")
    raise Unreadable("It is a ZIP archive. Unpack it first.")


def _refuse_binary(content: bytes) -> None:
    if content.startswith(_OLE):
        if "EncryptedPackage".encode("utf-16-le") in content:
            raise Unreadable("It is encrypted. Save it without a password.")
        raise Unreadable("It is an old Office document. Save it as DOCX.")
    for signature, what in _SIGNATURES.items():
        if content.startswith(signature) and not (signature.isalnum() and _is_ascii(content)):
            raise Unreadable(f"It is {what}.")


def _is_ascii(content: bytes) -> bool:
    """Whether the first bytes are text after all: a text may well begin with MZ, GIF8 or BZh."""
    return content[:64].isascii() and content[:64].translate(None, _CONTROLS) == content[:64]


def _of_text(text: str, name: str) -> DocumentKind:
    if _HTML_HEAD.match(text[:_HTML_HEAD_CHARS]):
        return "html"
    named = _named(name)
    if named in ("pdf", "docx", "text", None) and _is_json(text):
        return "json"
    # What has such a name and nothing of its kind in it is text that is named wrongly.
    return "text" if named in ("pdf", "docx", None) else named


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(text, parse_int=str)
    except (ValueError, RecursionError):
        return False
    return True


def _named(name: str) -> DocumentKind | None:
    return _EXTENSIONS.get(PurePath(name).suffix.lower())
