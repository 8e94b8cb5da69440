"""The module `workspace`, called as the host calls it."""

import json
from pathlib import Path

import pytest

from toolfold.errors import ToolFailed
from toolfold.jsontypes import JsonObject
from toolfold.workspace import descent
from toolfold.workspace.usage import Quota
from toolfold.workspace.verbs import WorkspaceVerbs
from toolfold.workspace.workspace import Workspace

QUOTA = Quota(bytes=20_000_000, files=2_000, file_bytes=10_000_000)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path, QUOTA)


class Unwanted(BaseException):
    """Nobody waits any more."""


class Check:
    """Ends the work at the second look."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self) -> None:
        self.looks += 1
        if self.looks == 2:
            raise Unwanted


ROWS = 20_000
FILES = {
    "list.json": json.dumps([{"a": 1}] * ROWS),
    "deep.json": json.dumps({"other": [{"a": 1}] * ROWS, "rows": []}),
    "lines.jsonl": '{"a": 1}\n' * ROWS,
    "table.csv": "a,b\n" + "1,2\n" * ROWS * 3,
    "text.txt": "some words\n" * ROWS,
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    ("verb", "more"), [("describe", {}), ("count", {}), ("records", {"start": 1_000_000})]
)
def test_work_on_a_file_ends_when_nobody_waits_for_it(
    workspace: Workspace, name: str, verb: str, more: JsonObject
) -> None:
    workspace.save(name, FILES[name].encode())
    check = Check()
    at: JsonObject = {"at": "rows"} if name == "deep.json" and verb != "describe" else {}

    with pytest.raises(Unwanted):
        WorkspaceVerbs(workspace, max_chars=1000, check=check).call(
            verb, {"path": name} | more | at
        )

    assert check.looks == 2


def test_a_listing_ends_when_nobody_waits_for_it(workspace: Workspace) -> None:
    for number in range(3):
        workspace.make(f"f{number}")

    with pytest.raises(Unwanted):
        WorkspaceVerbs(workspace, max_chars=1000, check=Check()).call("list", {})


def test_work_on_a_file_that_takes_too_long_ends_in_words(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.save("lines.jsonl", FILES["lines.jsonl"].encode())
    moments = iter(range(0, 1_000_000, 11))
    monkeypatch.setattr(descent.time, "monotonic", lambda: next(moments))
    verbs = WorkspaceVerbs(workspace, max_chars=1000)

    with pytest.raises(ToolFailed, match=r"workspace\.count: It took more than 30 s.*part by part"):
        verbs.call("count", {"path": "lines.jsonl"})
    told = verbs.call("describe", {"path": "lines.jsonl"})
    assert isinstance(told, dict)
    assert "more than 30 s" in str(told["note"])


def test_a_listing_has_the_first_thousand_by_name_and_no_endless_pattern(
    workspace: Workspace,
) -> None:
    for number in range(1_200):
        workspace.make(f"f{number:04}")
    verbs = WorkspaceVerbs(workspace, max_chars=1000)

    listed = verbs.call("list", {})
    assert isinstance(listed, list)
    paths = [str(each["path"]) for each in listed if isinstance(each, dict)]
    assert paths == [f"/workspace/f{number:04}" for number in range(1_000)]
    with pytest.raises(ToolFailed, match="500 characters"):
        verbs.call("list", {"pattern": "*a" * 10_000})
