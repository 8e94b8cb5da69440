"""What was ingested is found by questions about it, with the built-in model."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from made_files import make_pdf
from running import Library, running_library
from support import ROOT

from toolfold.embedding import BuiltinEmbedder
from toolfold.memory.documents.models import Ingested

TOWNS = (
    *("Aldermoor", "Brackwater", "Cinderford", "Dunhollow", "Elmsworth", "Fenwick", "Gravenhurst"),
    *("Harrowgate", "Ironbridge", "Juniper Falls"),
)
TOPICS = {
    "bakery": (
        "The bakery of {town} opens at {number} in the morning and is known for rye bread.",
        "When can one buy bread in {town}?",
    ),
    "railway": (
        "Trains leave the station of {town} every {number} minutes, and none at night.",
        "How often does a train depart from {town}?",
    ),
    "school": (
        "The grammar school in {town} teaches {number} pupils, who learn Latin and chemistry.",
        "How many children are taught in {town}?",
    ),
    "museum": (
        "In the museum of {town} hang {number} paintings of ships by an unknown sailor.",
        "How many pictures does the gallery in {town} show?",
    ),
    "hospital": (
        "The hospital of {town} has {number} beds and a ward for broken bones.",
        "How many patients fit into the clinic of {town}?",
    ),
}
FILLER = "This page says nothing of interest and serves to keep the others company."

DOCUMENTATION = {
    "How is guest code kept from the file system and the network?": "security.md",
    "Which command trusts the servers of a project?": "security.md configuration.md",
    "What happens when the daemon dies while a run is under way?": "daemon.md",
    "How do I make toolfold reachable over HTTP?": "http.md",
    "How do I install the plugin for Claude Code?": "clients.md",
}


@dataclass(frozen=True)
class Shelf:
    library: Library
    towns: tuple[str, ...]
    documentation: Path
    pdfs: Ingested
    docs: Ingested
    told: list[tuple[int, int, str]]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", params=[2, pytest.param(10, marks=pytest.mark.soak)])
async def shelf(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Shelf]:
    towns = tuple(TOWNS[: request.param])
    folder = tmp_path_factory.mktemp("towns")
    for number, (town, topic) in enumerate((town, topic) for town in towns for topic in TOPICS):
        fact = TOPICS[topic][0].format(town=town, number=number + 3)
        pages = [[FILLER], [f"About {town}.", fact], [FILLER]]
        (folder / f"{town}-{topic}.pdf").write_bytes(make_pdf(pages, title=f"{topic} of {town}"))
    documentation = ROOT / "docs"
    if len(towns) < len(TOWNS):
        documentation = tmp_path_factory.mktemp("docs")
        for name in {name for names in DOCUMENTATION.values() for name in names.split()}:
            (documentation / name).write_text((ROOT / "docs" / name).read_text())
    told: list[tuple[int, int, str]] = []
    data = tmp_path_factory.mktemp("data")
    async with running_library(data, BuiltinEmbedder()) as library:
        pdfs = await library.documents.ingest(
            str(folder), tags="towns", progress=lambda *news: told.append(news)
        )
        docs = await library.documents.ingest(str(documentation), tags="docs")
        await library.memory.until_ready()
        yield Shelf(library, towns, documentation, pdfs, docs, told)


async def test_pdfs_and_a_folder_of_documentation_are_ingested_with_progress(
    shelf: Shelf,
) -> None:
    count = len(shelf.towns) * len(TOPICS)
    assert (shelf.pdfs.added, shelf.pdfs.failures) == (count, ())
    assert [done for done, _, _ in shelf.told] == list(range(count + 1))
    documentation = shelf.documentation
    assert shelf.docs.added == len([*documentation.glob("*.md"), *documentation.glob("*.html")])
    assert shelf.docs.failures == ()


@pytest.mark.parametrize("topic", TOPICS)
async def test_questions_about_the_pdfs_find_their_pages(shelf: Shelf, topic: str) -> None:
    missed = []
    for town in shelf.towns:
        question = TOPICS[topic][1].format(town=town)
        found = await shelf.library.memory.search(question, limit=3)
        notes = [await shelf.library.memory.get(each.hash) for each in found.memories]
        if not any(Path(note.source).name == f"{town}-{topic}.pdf" for note in notes):
            missed.append(question)

    assert not missed


@pytest.mark.parametrize(("question", "names"), DOCUMENTATION.items())
async def test_questions_about_the_documentation_find_the_right_page(
    shelf: Shelf, question: str, names: str
) -> None:
    found = await shelf.library.memory.search(question, limit=5)

    notes = [await shelf.library.memory.get(each.hash) for each in found.memories]
    assert {Path(note.source).name for note in notes} & set(names.split())


async def test_notes_and_documents_are_found_side_by_side(shelf: Shelf) -> None:
    await shelf.library.memory.store("The baker of Fenwick is called Osbert.", tags="people")
    await shelf.library.memory.until_ready()

    found = await shelf.library.memory.search("baker bread Fenwick", limit=4)

    types = {(await shelf.library.memory.get(each.hash)).type for each in found.memories}
    assert types == {"note", "document"}
