"""Read DOCX: a ZIP archive with XML in it."""

import re
import zlib
from io import BytesIO
from typing import Final
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile

from toolfold.memory.documents.kinds import Blocks, DocumentContent, Unreadable

# A page of text takes some 50 kB of XML.
MAX_PART_BYTES: Final = 128 * 1024 * 1024

_PARTS: Final = ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml")
_WORDS: Final = "http://schemas.openxmlformats.org/wordprocessingml/2006/main "
_DUBLIN: Final = "http://purl.org/dc/elements/1.1/ "
_STYLED: Final = re.compile(r"heading\s*([1-9])", re.IGNORECASE)
_BREAKS: Final = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_ENCRYPTED: Final = 0x1


def read_docx(content: bytes) -> DocumentContent:
    """Return headings and paragraphs, rows of tables as one paragraph; footnotes come last.

    Raises:
        Unreadable: It is damaged or encrypted, or holds what no document holds.
    """
    try:
        with ZipFile(BytesIO(content)) as archive:
            names = set(archive.namelist())
            levels = _heading_styles(archive) if "word/styles.xml" in names else {}
            body = _Body(levels)
            for name in _PARTS:
                if name in names:
                    _parse(_part(archive, name), body)
            return DocumentContent(body.blocks.found, _title(archive) or body.title)
    except (BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise Unreadable(f"It is damaged, or only a part of a document: {error}.") from error


def _part(archive: ZipFile, name: str) -> bytes:
    if archive.getinfo(name).flag_bits & _ENCRYPTED:
        raise Unreadable("It is encrypted. Save it without a password.")
    with archive.open(name) as part:
        # What the archive says of its sizes may be a lie; what comes out is counted.
        found = part.read(MAX_PART_BYTES + 1)
    if len(found) > MAX_PART_BYTES:
        raise Unreadable(f"It unpacks to more than {MAX_PART_BYTES:,} bytes. That is no document.")
    return found


def _parse(xml: bytes, handler: "_Body | _Texts | _Styles") -> None:
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_declarations
    parser.StartElementHandler = handler.start
    parser.EndElementHandler = handler.end
    parser.CharacterDataHandler = handler.text
    try:
        parser.Parse(xml, True)
    except expat.ExpatError as error:
        raise Unreadable(f"It is damaged: {error}.") from error


def _refuse_declarations(*_: object) -> None:
    raise Unreadable("It declares XML entities, which no word processor does. Save it again.")


def _title(archive: ZipFile) -> str:
    if "docProps/core.xml" not in archive.namelist():
        return ""
    found = _Texts(f"{_DUBLIN}title")
    _parse(_part(archive, "docProps/core.xml"), found)
    return " ".join("".join(found.texts).split())


def _heading_styles(archive: ZipFile) -> dict[str, int]:
    """Return the levels of styles by id: in other languages, only their names say `heading 1`."""
    found = _Styles()
    _parse(_part(archive, "word/styles.xml"), found)
    return found.levels


class _Texts:
    """Gathers what one element says."""

    def __init__(self, element: str) -> None:
        self.texts: list[str] = []
        self._element = element
        self._is_inside = False

    def start(self, name: str, _: dict[str, str]) -> None:
        self._is_inside |= name == self._element

    def end(self, name: str) -> None:
        self._is_inside &= name != self._element

    def text(self, data: str) -> None:
        if self._is_inside:
            self.texts.append(data)


class _Styles:
    """Gathers which styles are of headings, and of which level."""

    def __init__(self) -> None:
        self.levels: dict[str, int] = {}
        self._style = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.removeprefix(_WORDS)
        if name == "style":
            self._style = attributes.get(f"{_WORDS}styleId", "")
        elif name == "name":
            level = _level(attributes.get(f"{_WORDS}val", ""))
            if level:
                self.levels[self._style] = level

    def end(self, name: str) -> None:
        """Nothing: a style begins where another ends."""

    def text(self, data: str) -> None:
        """Nothing: all is said by attributes."""


class _Body:
    """Gathers paragraphs."""

    def __init__(self, levels: dict[str, int]) -> None:
        self.blocks = Blocks()
        self.title = ""
        self._levels = levels
        self._level = 0
        self._is_text = False
        self._rows = 0
        self._texts: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.removeprefix(_WORDS)
        if name == "t":
            self._is_text = True
        elif name in _BREAKS:
            self._texts.append(_BREAKS[name])
        elif name == "tr":
            self._rows += 1
        elif name == "pStyle":
            self._style(attributes.get(f"{_WORDS}val", ""))

    def end(self, name: str) -> None:
        name = name.removeprefix(_WORDS)
        if name == "t":
            self._is_text = False
        elif name == "tc":
            self._texts.append(" | ")
        elif name == "tr":
            self._rows -= 1
            self._end_block()
        elif name == "p" and not self._rows:
            self._end_block()

    def text(self, data: str) -> None:
        if self._is_text:
            self._texts.append(data)

    def _style(self, style: str) -> None:
        self._level = self._levels.get(style) or _level(style)
        if style.lower() == "title":
            self._level = 1

    def _end_block(self) -> None:
        if not self._rows:
            text = "".join(self._texts)
            text = f"{text.removesuffix(' | ')}\n" if text.endswith(" | ") else text
            if self._level == 1 and not self.title:
                self.title = " ".join(text.split())
            self.blocks.add(text, level=self._level)
            self._texts, self._level = [], 0


def _level(style: str) -> int:
    found = _STYLED.match(style)
    return int(found[1]) if found else 0
