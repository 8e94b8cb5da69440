"""Which files may be read is up to whoever made the service."""

from pathlib import Path

import pytest
from fakes import FakeEmbedder
from running import running_library

from toolfold.errors import BadInput, NotFound


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """An open folder and one that is not, each with a file."""
    for name in ("open", "closed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text(f"what is {name}")
    return tmp_path / "open", tmp_path / "closed"


async def test_only_what_is_below_a_root_is_read(
    tmp_path: Path, places: tuple[Path, Path], embedder: FakeEmbedder
) -> None:
    open_, closed = places
    async with running_library(tmp_path / "data", embedder, roots=[open_]) as library:
        assert (await library.documents.ingest(str(open_))).added == 1
        for path in (closed, closed / "a.md", open_ / ".." / "closed", tmp_path, closed / "none"):
            with pytest.raises(BadInput, match="may be read"):
                await library.documents.ingest(str(path))
        with pytest.raises(NotFound):
            await library.documents.ingest(str(open_ / "none"))


async def test_a_link_out_of_a_root_leads_nowhere(
    tmp_path: Path, places: tuple[Path, Path], embedder: FakeEmbedder
) -> None:
    open_, closed = places
    (open_ / "file.md").symlink_to(closed / "a.md")
    (open_ / "folder").symlink_to(closed)
    async with running_library(tmp_path / "data", embedder, roots=[open_]) as library:
        for name in ("file.md", "folder", "folder/a.md"):
            with pytest.raises(BadInput, match="may be read"):
                await library.documents.ingest(str(open_ / name))
        assert (await library.documents.ingest(str(open_))).added == 1
        assert (await library.memory.search("closed")).total == 0


async def test_a_root_may_be_reached_by_a_link_and_paths_may_be_relative_to_it(
    tmp_path: Path, places: tuple[Path, Path], embedder: FakeEmbedder
) -> None:
    open_, _ = places
    (tmp_path / "way").symlink_to(open_)
    async with running_library(tmp_path / "data", embedder, roots=[tmp_path / "way"]) as library:
        assert (await library.documents.ingest("a.md")).added == 1
        assert (await library.documents.ingest(str(tmp_path / "way" / "a.md"))).unchanged == 1
        assert await library.documents.forget_document("a.md") == 1
        with pytest.raises(BadInput, match="may be read"):
            await library.documents.ingest("../closed/a.md")


async def test_without_roots_the_error_says_how_to_allow_some(
    tmp_path: Path, places: tuple[Path, Path], embedder: FakeEmbedder
) -> None:
    open_, _ = places
    async with running_library(tmp_path / "data", embedder, roots=[]) as library:
        with pytest.raises(BadInput, match="toolfold memory ingest"):
            await library.documents.ingest(str(open_))
        with pytest.raises(BadInput, match=r"memory\.ingest_roots"):
            await library.documents.ingest("a.md")
