"""Measure the ingestion of documents: time beside what it must cost at least, tokens, and answers.

The least is the bare extraction of the text, by pdfium in a process that is warm, and embedding the
same chunks. Ingestion must end, with everything found by its meaning, within twice that. The tokens
are those of reading all of the text, and of one call to ingest and one for each search.
"""

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import anyio
import pypdfium2
from notes import notes
from stage import ROOT
from targets import limit

from toolfold.embedding import TOKENIZER, BuiltinEmbedder
from toolfold.memory.documents.child import load_measure, read_document
from toolfold.memory.documents.service import Documents
from toolfold.memory.note_vectors import NoteVectorizer
from toolfold.memory.service import Memory
from toolfold.memory.sql.documents import SqlDocuments
from toolfold.memory.sqlite.connection import SqliteFile
from toolfold.memory.sqlite.store import SqliteStore
from toolfold.tokens import count_tokens

sys.path.append(str(ROOT / "tests" / "memory" / "documents"))
from made_files import make_pdf

NAMESPACE = "bench"
NOTES_ON_A_PAGE = 12
LINE_CHARS = 95
TARGET = limit("documents")
QUESTIONS = 20


@dataclass(frozen=True)
class Book:
    content: bytes
    facts: list[str]
    pages: int


@dataclass(frozen=True)
class Answers:
    text: str
    """All that a model reads of them."""
    found: int


def main() -> int:
    """Print the figures; fail where ingestion takes too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=200, metavar="N", help="default: 200")
    arguments = parser.parse_args()
    book = make_book(arguments.pages)
    least_s = _least(book)
    with tempfile.TemporaryDirectory() as directory:
        ingested_s = anyio.run(_ingest, book, Path(directory))
    ratio = ingested_s / least_s
    print(f"\ningestion beside the least: {ratio:.2f}, target {TARGET:g}")
    return int(ratio > TARGET)


def make_book(pages: int) -> Book:
    """Return a PDF of so many pages of prose, with a heading for each ten."""
    facts = list(notes(pages * NOTES_ON_A_PAGE, seed="book"))
    lines = [
        [line for fact in facts[at : at + NOTES_ON_A_PAGE] for line in _wrapped(fact)]
        for at in range(0, len(facts), NOTES_ON_A_PAGE)
    ]
    outline = [(f"Chapter {number // 10 + 1}", number) for number in range(0, pages, 10)]
    return Book(make_pdf(lines, title="The book of notes", outline=outline), facts, pages)


def _wrapped(text: str) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= LINE_CHARS:
            lines.append("")
        lines[-1] += f"{word} "
    return [line.rstrip() for line in lines]


def _least(book: Book) -> float:
    """Print and return what extraction and embedding take by themselves."""
    start = time.perf_counter()
    document = pypdfium2.PdfDocument(book.content)
    text = "\n".join(page.get_textpage().get_text_bounded() for page in document)
    extracted_s = time.perf_counter() - start
    _, _, chunks = read_document(book.content, "book.pdf", load_measure(TOKENIZER))
    embedder = BuiltinEmbedder()
    embedder.embed([""])
    start = time.perf_counter()
    embedder.embed([chunk.content for chunk in chunks])
    embedded_s = time.perf_counter() - start
    print(f"{book.pages} pages, {len(text):,} characters, {len(chunks)} chunks")
    print(f"bare extraction                 {extracted_s:8.2f} s")
    print(f"embedding the chunks            {embedded_s:8.2f} s", flush=True)
    return extracted_s + embedded_s


async def _ingest(book: Book, directory: Path) -> float:
    """Print what ingestion takes and what its answers cost; return how long until all is found."""
    path = directory / "book.pdf"
    path.write_bytes(book.content)
    file = SqliteFile(directory / "memory.db")
    store = SqliteStore(file)
    async with file.running(), store.running():
        meaning = NoteVectorizer(store, BuiltinEmbedder())
        async with meaning.running():
            memory = Memory(store, meaning, namespace=NAMESPACE)
            documents = Documents(SqlDocuments(file), meaning, namespace=NAMESPACE, roots=None)
            await meaning.until_done()  # the model is loaded, as in a daemon
            start = time.perf_counter()
            result = await documents.ingest(str(path))
            kept_s = time.perf_counter() - start
            await memory.until_ready()
            ready_s = time.perf_counter() - start
            start = time.perf_counter()
            await documents.ingest(str(path))
            again_s = time.perf_counter() - start
            answers = await _answers(memory, book)
    print(f"ingest, until found by words    {kept_s:8.2f} s")
    print(f"ingest, until found by meaning  {ready_s:8.2f} s")
    print(f"ingest again, unchanged         {again_s * 1e3:8.2f} ms")
    _print_tokens(book, repr(result), answers)
    return ready_s


async def _answers(memory: Memory, book: Book) -> Answers:
    """Ask for facts spread over the book, and count those whose page is among the first five."""
    step = len(book.facts) // QUESTIONS
    texts = []
    found = 0
    for fact in book.facts[step // 2 :: step][:QUESTIONS]:
        query = fact.partition(" (no.")[0]
        words = " ".join(word.strip(".,;:") for word in query.split() if len(word) > 4)
        hits = await memory.search(words, limit=5)
        notes_found = [await memory.get(each.hash) for each in hits.memories]
        found += any(_plain(query) in _plain(note.content) for note in notes_found)
        texts += [words, repr(hits), notes_found[0].content]
    return Answers("\n".join(texts), found)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _print_tokens(book: Book, result: str, answers: Answers) -> None:
    whole = count_tokens("\n".join(book.facts))
    asked = count_tokens(result) + count_tokens(answers.text)
    print(f"\n{answers.found} of {QUESTIONS} facts are found among the first five")
    print(f"tokens, all of the text through the model         {whole:>8,}")
    print(f"tokens, ingest and {QUESTIONS} searches, best note read whole {asked:>8,}")
    print(f"that is {whole / asked:.0f} times less")


if __name__ == "__main__":
    sys.exit(main())
