"""What a model reads."""

import subprocess
import sys
from datetime import datetime

from toolfold.memory.models import (
    CompactHealthInfo,
    CompactMemory,
    CompactSearchResult,
    ExplainedMemory,
    note_hash,
    preview,
)

CREATED = datetime(2026, 5, 3, 12).timestamp()  # noqa: DTZ001
MEMORY = CompactMemory("1a2b3c4d", "We use OAuth", ("auth", "api"), CREATED, 0.8234)


def test_a_memory_is_one_line() -> None:
    assert repr(MEMORY) == "1a2b3c4d 2026-05-03 [auth, api] 0.82: We use OAuth"
    assert repr(MEMORY._replace(tags=())) == "1a2b3c4d 2026-05-03 0.82: We use OAuth"
    assert tuple(MEMORY) == ("1a2b3c4d", "We use OAuth", ("auth", "api"), CREATED, 0.8234, "")
    past = MEMORY._replace(superseded="by 5e6f7a8b on 2026-06-01")
    assert repr(past) == f"{MEMORY!r} (superseded by 5e6f7a8b on 2026-06-01)"


def test_an_explained_memory_says_why() -> None:
    explained = ExplainedMemory(**MEMORY._asdict(), why="0.82 = words")

    assert repr(explained).splitlines() == [repr(MEMORY), "    0.82 = words"]


def test_a_result_says_how_much_there_is() -> None:
    result = CompactSearchResult((MEMORY,), 17, "auth")

    assert repr(result) == f"1 of 17 notes for 'auth':\n{MEMORY!r}"
    assert repr(CompactSearchResult((), 0, "auth")) == "No notes for 'auth'."
    assert repr(CompactSearchResult((), 0, "")) == "No notes."


def test_health_is_one_sentence() -> None:
    assert repr(CompactHealthInfo("ok", 12, "sqlite", ready=True)) == (
        "Memory ok: 12 notes in sqlite, ready."
    )
    assert "still learning" in repr(CompactHealthInfo("ok", 12, "sqlite", ready=False))


def test_a_preview_is_the_beginning_on_one_line() -> None:
    assert preview("a\n  b\tc") == "a b c"
    assert preview("x" * 200) == "x" * 200
    assert preview("word " * 100) == ("word " * 40)[:199].rstrip() + "…"
    assert preview(" " * 1000 + "late\n") == "late"


def test_the_name_of_a_note_is_the_hash_of_its_content_in_every_store() -> None:
    assert note_hash("hello") == (
        "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    )
    placed = {note_hash("hello", thread="t", position=at) for at in (1, 2)}
    assert len(placed | {note_hash("hello"), note_hash("hello", thread="u", position=1)}) == 4


def test_the_models_are_light_to_import() -> None:
    heavy = {"numpy", "anyio", "sqlite3", "asyncio", "pydantic"}
    code = "import sys, toolfold.memory.models; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)

    assert heavy & set(done.stdout.split()) == set()
