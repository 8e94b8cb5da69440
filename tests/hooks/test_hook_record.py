"""A transcript becomes a short record."""

import json
import os
from pathlib import Path

import pytest
from hooks.home import said, transcript

from toolfold.relay.hooks.record import describe, duration_ms, read_transcript

FIXED = "Fixed: the cookie needs SameSite=Lax."
KEY = "sk-ant-api03-" + "x1Y2z3" * 8


def record(path: Path) -> str:
    return describe(read_transcript(str(path)), project="api", directory="/srv/api")


def test_a_record_says_what_was_asked_what_was_edited_and_how_it_ended(tmp_path: Path) -> None:
    edit = {"type": "tool_use", "name": "Edit", "input": {"file_path": "/srv/api/src/login.py"}}
    path = transcript(
        tmp_path / "t.jsonl",
        [
            {"type": "summary", "summary": "not a message"},
            said("user", "Fix the login redirect loop.\nIt began on Monday."),
            said("user", "<command-name>/model</command-name>"),
            said("user", "Caveat: the messages below were generated", isMeta=True),
            said("assistant", [{"type": "text", "text": "Let me look."}, edit]),
            said("user", [{"type": "tool_result", "content": "a secret result"}]),
            said("assistant", [{"type": "text", "text": "of a helper"}], isSidechain=True),
            said("user", f"use the key {KEY}"),
            said("assistant", [{"type": "text", "text": FIXED}], timestamp="2026-11-15T10:05:31Z"),
        ],
    )

    assert record(path).splitlines() == [
        "Conversation in api on 2026-11-15. The user asked:",
        "- Fix the login redirect loop. It began on Monday.",
        "- use the key [secret removed]",
        "Edited: src/login.py",
        f"It ended with: {FIXED}",
    ]
    assert duration_ms(read_transcript(str(path))) == 331_000


def test_a_long_conversation_still_has_a_short_record(tmp_path: Path) -> None:
    lines = [said("user", f"step {n}: {'word ' * 2_000}") for n in range(600)]
    path = transcript(tmp_path / "t.jsonl", lines)

    text = record(path)

    assert path.stat().st_size > 5_000_000
    assert len(text) < 2_000
    assert "step 0" in text
    assert "step 599" in text
    assert "more)" in text


def test_a_secret_at_the_place_where_a_text_is_cut_does_not_stay_in_half(tmp_path: Path) -> None:
    for length in range(200, 250):
        path = transcript(tmp_path / "t.jsonl", [said("user", "x" * length + " " + KEY)])
        assert "sk-ant" not in record(path)
    blank = " " * 4_200 + KEY + " and much more" * 999
    assert "sk-ant" not in record(transcript(tmp_path / "t.jsonl", [said("user", blank)]))


def test_of_many_long_names_of_files_a_few_are_shown(tmp_path: Path) -> None:
    edits = [
        {"type": "tool_use", "name": "Edit", "input": {"file_path": f"/{n}{'x' * 3_000}"}}
        for n in range(30)
    ]
    path = transcript(tmp_path / "t.jsonl", [said("user", "go"), said("assistant", edits)])

    [names] = [line for line in record(path).splitlines() if line.startswith("Edited: ")]
    assert names.endswith("… and 18 more")
    assert len(names) < 12 * 410


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe\x00", b"[1]\n{}\nnull\n{", b'{"type": "user", "message": 5}', b"[" * 100_000],
)
def test_a_transcript_that_is_none_gives_no_record(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)

    assert record(path) == ""


def test_odd_blocks_are_passed_over(tmp_path: Path) -> None:
    odd = [5, {"type": "text"}, {"type": "text", "text": 5}, {"name": "Edit", "input": "x"}]
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(said("assistant", odd)) + "\n" + json.dumps(said("user", "hello")))

    assert "- hello" in record(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(OSError, match="is not a file"):
        read_transcript(str(tmp_path / "pipe"))
