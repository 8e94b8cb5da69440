"""The process that reads files: whatever is in them, it cannot take the daemon along.

`python -m toolfold.memory.documents.child` answers requests on standard input until that ends. A
request is a line of JSON, `{"name": …, "bytes": N}`, and the N bytes of a file; the answer is one
line of JSON: `{"kind", "title", "pages", "chunks"}`, or `{"unreadable": reason}`. Nothing but text
comes back. Before the first request it gives up what reading does not need: it may use so much
memory and time and no more, and write no file.
"""

import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Final

from toolfold.memory.documents.chunks import Chunk, Measure, cut
from toolfold.memory.documents.kinds import (
    DocumentContent,
    DocumentKind,
    Reader,
    Unreadable,
    tell_kind,
)
from toolfold.wordpiece import WordPieces

if sys.platform != "win32":
    import resource

MAX_MEMORY_BYTES: Final = 2 * 1024**3
MAX_CPU_S: Final = 120
"""For one file."""

_OPEN_FILES: Final = 64
# Imported when such a file comes: pdfium alone takes 0.1 s.
_READERS: Final[dict[DocumentKind, tuple[str, str]]] = {
    "pdf": ("pdf", "read_pdf"),
    "docx": ("docx", "read_docx"),
    "html": ("markup", "read_html"),
    "markdown": ("text", "read_markdown"),
    "text": ("text", "read_text"),
    "csv": ("tables", "read_csv"),
    "json": ("tables", "read_json"),
}


def main() -> None:
    """Answer until there are no more requests."""
    extend_time = _give_up_rights()
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr  # a library that prints must not break an answer
    measure = load_measure(Path(sys.argv[1]))
    while request := sys.stdin.buffer.readline():
        extend_time()
        answer = _answer(json.loads(request), sys.stdin.buffer, measure)
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def load_measure(tokenizer_file: Path) -> Measure:
    """Return what tells how many word pieces the embedder will see in a text."""
    return WordPieces.read(tokenizer_file).count


def read_document(
    content: bytes, name: str, measure: Measure
) -> tuple[DocumentKind, DocumentContent, list[Chunk]]:
    """Return what kind of file it is, what it says, and the same in chunks.

    Raises:
        Unreadable: Nothing can be read from it.
    """
    kind = tell_kind(content, name)
    found = _reader(kind)(content)
    chunks = list(cut(found.blocks, measure))
    if not chunks:
        raise Unreadable("There is no text in it.")
    return kind, found, chunks


def _reader(kind: DocumentKind) -> Reader:
    module, name = _READERS[kind]
    reader: Reader = getattr(import_module(f"toolfold.memory.documents.readers.{module}"), name)
    return reader


def _answer(request: dict[str, Any], source: BinaryIO, measure: Measure) -> dict[str, Any]:
    content = source.read(request["bytes"])
    try:
        kind, found, chunks = read_document(content, request["name"], measure)
    except Unreadable as reason:
        return {"unreadable": str(reason)}
    except (MemoryError, RecursionError):
        return {"unreadable": "It takes more memory than a document should."}
    return {
        "kind": kind,
        "title": found.title,
        "pages": found.pages,
        "chunks": [[chunk.content, chunk.headings, chunk.page] for chunk in chunks],
    }


def _give_up_rights() -> Callable[[], None]:
    """Set limits on this process; return what gives it time for one more file."""
    if sys.platform == "win32":  # there the host's patience is the only limit
        return lambda: None
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))

    def extend() -> None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(used.ru_utime + used.ru_stime) + MAX_CPU_S
        [_, most] = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, most))

    return extend


if __name__ == "__main__":
    main()
