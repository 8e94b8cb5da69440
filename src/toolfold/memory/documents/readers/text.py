"""Read plain text and Markdown."""

import re
from typing import Final

from toolfold.memory.documents.kinds import MAX_HEADING_CHARS, Blocks, DocumentContent, decoded

_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*$")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_UNDERLINE: Final = re.compile(r"([=\-~^\"#*+])\1{2,}\s*$")
_TITLE: Final = re.compile(r"title:\s*(.+)", re.IGNORECASE)


def read_text(content: bytes) -> DocumentContent:
    """Return the paragraphs of a text. Lines that are underlined are headings, as in reST."""
    blocks = Blocks()
    pages = decoded(content).split("\f")
    levels: dict[str, int] = {}
    for number, page in enumerate(pages, start=1):
        _read_paragraphs(page, blocks, levels, number if len(pages) > 1 else None)
    return DocumentContent(blocks.found, pages=len(pages) if len(pages) > 1 else None)


def _read_paragraphs(text: str, blocks: Blocks, levels: dict[str, int], page: int | None) -> None:
    lines: list[str] = []
    for line in text.splitlines():
        if not line.strip():
            blocks.add("\n".join(lines), page=page)
            lines = []
        elif len(lines) == 1 and _is_underline(line, below=lines[0]):
            level = levels.setdefault(line[0], len(levels) + 1)
            blocks.add(lines.pop(), level=level, page=page)
        else:
            lines.append(line)
    blocks.add("\n".join(lines), page=page)


def _is_underline(line: str, *, below: str) -> bool:
    return (
        _UNDERLINE.match(line) is not None
        and len(below) <= MAX_HEADING_CHARS
        and len(line.rstrip()) >= len(below.rstrip())
    )


def read_markdown(content: bytes) -> DocumentContent:
    """Return headings and paragraphs. What stands in a fence is one block, whatever it holds."""
    lines = decoded(content).splitlines()
    title, start = _front_matter(lines)
    blocks = Blocks()
    if start:
        blocks.add("\n".join(lines[1 : start - 1]))
    _read_markdown(lines[start:], blocks)
    first = next((block.text for block in blocks.found if block.level == 1), "")
    return DocumentContent(blocks.found, title or first)


def _read_markdown(lines: list[str], blocks: Blocks) -> None:
    waiting: list[str] = []
    fence = ""
    for line in lines:
        if fence:
            waiting.append(line)
            if line.strip().startswith(fence):
                blocks.add("\n".join(waiting))
                waiting, fence = [], ""
        elif opened := _FENCE.match(line):
            fence = opened[1]
            waiting.append(line)
        elif heading := _heading(line, waiting):
            blocks.add("\n".join(waiting))
            waiting = []
            blocks.add(heading[0], level=heading[1])
        elif line.strip():
            waiting.append(line)
        else:
            blocks.add("\n".join(waiting))
            waiting = []
    blocks.add("\n".join(waiting))


def _heading(line: str, waiting: list[str]) -> tuple[str, int] | None:
    """Return a heading and its level. The line above an underline is taken from those waiting."""
    if found := _HEADING.match(line):
        return found[2] or "", len(found[1])
    underline = line.strip()
    if len(waiting) == 1 and len(underline) > 1 and set(underline) in ({"="}, {"-"}):
        if waiting[0].lstrip()[:1] in ("|", "-", "*", ">"):
            return None
        return waiting.pop(), 1 if underline[0] == "=" else 2
    return None


def _front_matter(lines: list[str]) -> tuple[str, int]:
    """Return the title that YAML at the beginning tells, and how many lines it takes."""
    if not lines or lines[0].rstrip() != "---":
        return "", 0
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() in ("---", "..."):
            found = [match[1] for each in lines[1:number] if (match := _TITLE.match(each))]
            return (found[0].strip(" \"'") if found else ""), number + 1
    return "", 0
