"""Read HTML."""

import re
from html.parser import HTMLParser
from typing import Final

from toolfold.memory.documents.kinds import Blocks, DocumentContent, decoded

_SILENT: Final = {"script", "style", "template", "noscript", "svg", "head", "select"}
_INLINE: Final = {
    *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em"),
    *("font", "i", "ins", "kbd", "label", "mark", "q", "s", "samp", "small", "span", "strong"),
    *("sub", "sup", "time", "tt", "u", "var", "wbr"),
}
_LEVELS: Final = {f"h{level}": level for level in range(1, 7)}
_CHARSET: Final = re.compile(rb"""charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_CHARSET_BYTES: Final = 2048
_SPACE: Final = re.compile(r"\s+")


def read_html(content: bytes) -> DocumentContent:
    """Return headings and blocks of text, without scripts, styles and what else is not shown."""
    parser = _Parser()
    parser.feed(_decoded(content))
    parser.close()
    parser.end_block()
    return DocumentContent(parser.blocks.found, " ".join(parser.title.split()))


def _decoded(content: bytes) -> str:
    told = _CHARSET.search(content[:_CHARSET_BYTES])
    if told:
        try:
            return content.decode(told[1].decode("ascii"))
        except (LookupError, ValueError):
            pass
    return decoded(content)


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks = Blocks()
        self.title = ""
        self._is_title = False
        self._silent = 0
        self._preformatted = 0
        self._level = 0
        self._texts: list[str] = []
        self._cells = 0

    def handle_starttag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._is_title = not self.title
        elif tag in _SILENT:
            self._silent += 1
        elif tag == "body":
            self._silent = 0  # a head that nobody closed
        elif tag in ("td", "th"):
            self._texts.append(" | " if self._cells else "")
            self._cells += 1
        elif tag == "br":
            self._texts.append("\n")
        elif tag not in _INLINE:
            self.end_block()
            self._level = _LEVELS.get(tag, 0)
            self._preformatted += tag == "pre"
            self._texts.append("- " if tag == "li" else "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._is_title = False
        elif tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag not in _INLINE and tag not in ("td", "th", "br"):
            self.end_block()
            self._preformatted -= tag == "pre" and self._preformatted > 0

    def handle_data(self, data: str) -> None:
        if self._is_title:
            self.title += data
        elif not self._silent:
            self._texts.append(data if self._preformatted else _SPACE.sub(" ", data))

    def end_block(self) -> None:
        """Keep what was gathered as one block."""
        text = "".join(self._texts).strip("\n" if self._preformatted else None)
        if text.strip(" -|"):
            is_tight = self._cells or text.startswith("- ")
            self.blocks.add(f"{text}\n" if is_tight else text, level=self._level)
        self._texts, self._cells, self._level = [], 0, 0
