from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from toolfold.catalog.search.discovery import ToolIndex
from toolfold.catalog.search.tool_vectors import ToolVectorIndex
from toolfold.catalog.tool import ListedTool, Tool
from toolfold.embedding import BuiltinEmbedder, Vectors
from toolfold.errors import StoreError

EMBEDDER = BuiltinEmbedder()
TEXTS = {
    "purge_cache": "Remove stored entries.",
    "send_mail": "Write an e-mail to a person.",
    "weather": "Tell whether it will rain.",
}

pytestmark = pytest.mark.skipif(
    not EMBEDDER.is_available(), reason="The embedding model is not built; `make setup` does that."
)


def index() -> ToolIndex:
    return ToolIndex(
        [
            Tool(
                server="s",
                module="s",
                function=name,
                listed=ListedTool(name=name, description=text, input_schema={"type": "object"}),
            )
            for name, text in TEXTS.items()
        ]
    )


@asynccontextmanager
async def learning(meaning: ToolVectorIndex) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(meaning.keep_learning)
        yield
        tasks.cancel_scope.cancel()


async def found(meaning: ToolVectorIndex, tools: ToolIndex, query: str) -> list[str]:
    result = await meaning.search(tools, query, limit=1)
    return [tool.function for tool in result.hits]


async def test_search_goes_by_words_at_once_and_by_meaning_after_a_while(tmp_path: Path) -> None:
    meaning, tools = ToolVectorIndex(EMBEDDER, tmp_path), index()
    async with learning(meaning):
        at_once = await found(meaning, tools, "umbrella forecast")
        with anyio.fail_after(30):
            while not await found(meaning, tools, "umbrella forecast"):
                await anyio.sleep(0.02)
        later = await found(meaning, tools, "umbrella forecast")

    assert at_once == []
    assert later == ["weather"]


class Counting:
    """The real embedder, which also counts what it embeds."""

    name = EMBEDDER.name
    dimensions = EMBEDDER.dimensions

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: list[str]) -> Vectors:
        self.texts += [text for text in texts if text]
        return EMBEDDER.embed(texts)


async def test_vectors_are_kept_on_disk_and_not_computed_again(tmp_path: Path) -> None:
    counts = []
    for _ in range(2):
        counting = Counting()
        meaning, tools = ToolVectorIndex(counting, tmp_path), index()
        async with learning(meaning):
            with anyio.fail_after(30):
                while not await found(meaning, tools, "umbrella forecast"):
                    await anyio.sleep(0.02)
                while not list(tmp_path.iterdir()):
                    await anyio.sleep(0.02)
        counts.append(len([text for text in counting.texts if "umbrella" not in text]))

    assert counts == [9, 0]


async def test_what_is_listed_is_learned_before_anybody_searches(tmp_path: Path) -> None:
    counting, listed = Counting(), [index()]
    meaning = ToolVectorIndex(counting, tmp_path)
    meaning.follow(lambda: listed[-1])
    async with learning(meaning):
        for _ in range(2):  # the second time another listing has arrived
            with anyio.fail_after(30):
                while not meaning.is_ready_for(listed[-1]):
                    await anyio.sleep(0.02)
            first = await meaning.search(listed[-1], "umbrella forecast", limit=1)
            assert [tool.function for tool in first.hits] == ["weather"]
            assert not first.is_by_words_only
            listed.append(index())
            assert (await meaning.search(listed[-1], "rain", limit=1)).is_by_words_only
            meaning.renew()


class Broken:
    name = "broken"
    dimensions = 384

    def embed(self, texts: list[str]) -> Vectors:
        raise StoreError("The model is missing.")


async def test_without_a_model_search_goes_on_by_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    meaning, tools = ToolVectorIndex(Broken(), tmp_path), index()
    async with learning(meaning):
        await found(meaning, tools, "rain")
        with anyio.fail_after(60):
            while "words alone" not in caplog.text:
                await anyio.sleep(0.01)
        by_words = await found(meaning, tools, "rain")

    assert by_words == ["weather"]
