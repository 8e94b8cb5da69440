"""Conversations come along from what ChatGPT, Claude and Claude Code write.

The files have the structure of real exports: `conversations.json` with a tree of messages
(ChatGPT) or a list of them (Claude), in the zip in which they come; a line for each entry of a
transcript (Claude Code).
"""

import json
import resource
import stat
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from toolfold.errors import BadInput
from toolfold.memory.transfer.items import read_items, tell_source

NOW = 1_794_744_000.0


def chatgpt(name: str, *said: tuple[str, str]) -> dict[str, Any]:
    mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None}}
    parent = "root"
    for place, (role, text) in enumerate(said):
        node = f"{name}-{place}"
        message = {
            "id": node,
            "author": {"role": role, "name": None, "metadata": {}},
            "create_time": 1_700_000_000.5 + place,
            "content": {"content_type": "text", "parts": [text]},
            "metadata": {},
        }
        mapping[node] = {"id": node, "message": message, "parent": parent, "children": []}
        mapping[parent].setdefault("children", []).append(node)
        parent = node
    mapping["edited"] = {
        "id": "edited",
        "message": {"author": {"role": "user"}, "content": {"parts": ["a branch left behind"]}},
        "parent": "root",
        "children": [],
    }
    return {
        "title": f"About {name}",
        "create_time": 1_700_000_000.0,
        "mapping": mapping,
        "current_node": parent,
        "conversation_id": name,
    }


def claude(name: str, *said: tuple[str, str]) -> dict[str, Any]:
    return {
        "uuid": name,
        "name": f"About {name}",
        "created_at": "2024-05-01T10:00:00.000000Z",
        "chat_messages": [
            {
                "uuid": f"{name}-{place}",
                "sender": sender,
                "text": text,
                "content": [{"type": "text", "text": text}, {"type": "tool_use", "input": {}}],
                "created_at": f"2024-05-01T10:00:{place:02}.000000Z",
            }
            for place, (sender, text) in enumerate(said)
        ],
    }


def zipped(path: Path, **files: object) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in files.items():
            archive.writestr(f"{name}.json", json.dumps(value))
        archive.writestr("chat.html", "<html></html>")
    return path


def read(path: Path) -> list[Any]:
    return [item.found for item in read_items(path, tell_source(path), now=NOW)]


def told(path: Path) -> list[tuple[str, str, int, str]]:
    notes = [each.note for each in read(path)]
    return [(note.thread, note.content, note.position, note.metadata["title"]) for note in notes]


def test_an_export_of_chatgpt_comes_as_threads_without_branches(tmp_path: Path) -> None:
    said = (("system", "be kind"), ("user", 'Hi "there" {x}'), ("assistant", "Hello [you]\\"))
    path = zipped(tmp_path / "e.zip", conversations=[chatgpt("a", *said), chatgpt("b", *said)])

    assert tell_source(path) == "chatgpt"
    assert told(path) == [
        (f"chatgpt:{name}", content, place, f"About {name}")
        for name in "ab"
        for place, content in enumerate(['user: Hi "there" {x}', "assistant: Hello [you]\\"])
    ]
    assert read(path)[0].note.created == 1_700_000_001.5
    plain = tmp_path / "conversations.json"
    plain.write_text(json.dumps([chatgpt("a", *said)], indent=1))
    assert len(told(plain)) == 2


def test_an_export_of_claude_comes_with_speakers_and_times(tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "e.zip",
        users=[{"uuid": "u"}],
        conversations=[claude("c", ("human", "Where is the key?"), ("assistant", "In the hall."))],
    )

    assert tell_source(path) == "claude"
    assert [each[1] for each in told(path)] == [
        "user: Where is the key?",
        "assistant: In the hall.",
    ]
    assert [each.note.created for each in read(path)] == [1_714_557_600.0, 1_714_557_601.0]


def test_a_transcript_of_claude_code_leaves_tools_out(tmp_path: Path) -> None:
    lines = [
        {"type": "summary", "summary": "Keys", "leafUuid": "1"},
        {"type": "user", "sessionId": "s", "cwd": "/p", "timestamp": "2026-05-01T10:00:00.000Z",
         "message": {"role": "user", "content": "Fix the lock"}},
        {"type": "assistant", "sessionId": "s", "cwd": "/p",
         "message": {"content": [{"type": "thinking", "thinking": "hm"},
                                 {"type": "text", "text": "Done."}]}},
        {"type": "user", "sessionId": "s", "message": {"content": [{"type": "tool_result"}]}},
        {"type": "user", "sessionId": "s", "isMeta": True, "message": {"content": "meta"}},
    ]  # fmt: skip
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    assert tell_source(path) == "claude-code"
    assert told(path) == [
        ("claude-code:s", "user: Fix the lock", 0, "/p"),
        ("claude-code:s", "assistant: Done.", 1, "/p"),
    ]


def test_what_is_no_conversation_is_named_and_the_rest_is_taken(tmp_path: Path) -> None:
    broken = {"mapping": {"a": 3}, "current_node": "a"}
    whole = chatgpt("a", ("user", "hi there"))
    path = zipped(tmp_path / "e.zip", conversations=[whole, broken, {"other": 1}])

    first, *faults = read(path)
    assert first.note.content == "user: hi there"
    assert [fault.line for fault in faults] == [2, 3]


def hostile(path: Path, name: str, *, mode: int = 0) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", json.dumps([chatgpt("a", ("user", "hi"))]))
        member = zipfile.ZipInfo(name)
        member.external_attr = mode << 16
        archive.writestr(member, "x")
    return path


def test_hostile_zips_are_refused(tmp_path: Path) -> None:
    for name in ("../out.json", "/etc/passwd", "a/../../b", "C:\\x"):
        with pytest.raises(BadInput, match="leads out"):
            tell_source(hostile(tmp_path / "e.zip", name))
    with pytest.raises(BadInput, match="symbolic link"):
        tell_source(hostile(tmp_path / "e.zip", "link", mode=stat.S_IFLNK | 0o777))
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b"[" + b" " * 50_000_000 + b"]")
    with pytest.raises(BadInput, match="far more"):
        tell_source(bomb)
    cut = tmp_path / "cut.zip"
    cut.write_bytes(zipped(tmp_path / "e.zip", conversations=[claude("c")]).read_bytes()[:-30])
    with pytest.raises(BadInput):
        tell_source(cut)
    deep = tmp_path / "deep.json"
    deep.write_bytes(b"[" * 100_000)
    with pytest.raises(BadInput, match="nested deeper"):
        tell_source(deep)


def test_a_large_export_is_read_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    one = json.dumps(
        claude("c", *[("human", f"{place} " + "word " * 2_000) for place in range(50)])
    )
    with path.open("w") as file:
        file.write("[")
        for place in range(120):
            file.write(("," if place else "") + one.replace('"uuid": "c"', f'"uuid": "{place}"'))
        file.write("]")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    count = sum(1 for _ in read_items(path, "claude", now=NOW))

    assert path.stat().st_size > 100_000_000
    assert count == 120 * 50
    if sys.platform == "linux":
        assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < 60_000
