"""What people and models should never give, given at every door."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from api.memory_home import MemoryHome, in_this_process, memory_home
from relay.peer import Peer, text_of, toolfold_command

from toolfold import api
from toolfold.api import door
from toolfold.errors import BadInput


class Said(NamedTuple):
    """What a door answers."""

    is_refused: bool
    text: str


Door = Callable[..., Said]
"""Called with a verb and its arguments, each an expression of Python."""


@pytest.fixture(scope="module")
def memory_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryHome]:
    with memory_home(tmp_path_factory.mktemp("c")) as home:
        yield home
        for peer in home.peers:
            peer.close()
        door.close()


def by_api(verb: str, **arguments: Any) -> Said:
    try:
        return Said(False, repr(getattr(api, verb)(**arguments)))
    except BadInput as error:
        return Said(True, str(error))


def by_command(home: MemoryHome, project: Path, verb: str, **arguments: Any) -> Said:
    content, query = arguments.pop("content", None), arguments.pop("query", None)
    words = [verb]
    for name, value in arguments.items():
        words += [f"--{name}={','.join(value) if isinstance(value, list) else value}"]
    done = subprocess.run(
        toolfold_command("memory", *words, *([] if query is None else ["--", _word(query)])),
        input=None if content is None else content.encode("utf-8", "surrogatepass"),
        capture_output=True,
        env=home.environ,
        cwd=project,
        timeout=50,
    )
    assert done.returncode in {0, 2}
    assert b"Traceback" not in done.stderr
    return Said(done.returncode == 2, (done.stderr or done.stdout).decode())


def _word(text: str) -> str:
    """Return a word as a shell can give it: half of a pair is a byte that is no text."""
    return text.replace("\ud800", "\udcff")


def by_mcp(peer: Peer, verb: str, **arguments: Any) -> Said:
    peer.request("tools/call", {"name": f"memory_{verb}", "arguments": arguments})
    answer = peer.receive()
    if "error" in answer:  # whose line was so long that nobody read it
        return Said(True, answer["error"]["message"])
    return Said(answer["result"].get("isError", False), text_of(answer))


GUEST = """
import memory
try:
    print(memory.{verb}({arguments}))
except RuntimeError as error:
    print("refused", error)
"""


def by_guest(peer: Peer, verb: str, **arguments: str) -> Said:
    given = ", ".join(f"{name}={expression}" for name, expression in arguments.items())
    text = peer.run(GUEST.format(verb=verb, arguments=given))
    return Said(text.startswith(("refused", "Nothing was run", "Error on line 4")), text)


@pytest.fixture(params=["api through the daemon", "api alone", "command", "mcp", "guest"])
def ask(
    request: pytest.FixtureRequest, memory_user: MemoryHome, monkeypatch: pytest.MonkeyPatch
) -> Door:
    """Return one of the doors, in a project without notes."""
    project = memory_user.directory(re.sub(r"\W", "_", request.node.name)[-60:])
    if request.param == "guest":
        peer = memory_user.connect(cwd=project)
        return lambda verb, **given: by_guest(peer, verb, **given)
    if request.param == "mcp":
        peer = memory_user.connect("--tools", "memory", cwd=project)
        return lambda verb, **given: by_mcp(peer, verb, **evaluated(given))
    if request.param == "command":
        return lambda verb, **given: by_command(memory_user, project, verb, **evaluated(given))
    way = "own" if request.param == "api alone" else "daemon"
    in_this_process(memory_user, way, project, monkeypatch)
    return lambda verb, **given: by_api(verb, **evaluated(given))


def evaluated(given: dict[str, str]) -> dict[str, Any]:
    return {name: eval(expression) for name, expression in given.items()}  # ours, from below


REFUSED = [
    ("store", {"content": "''"}, "nothing to remember"),
    ("store", {"content": "' \\n\\t '"}, "nothing to remember"),
    ("store", {"content": "'x' * 10_000_000"}, r"10,000,000 bytes|larger than 8,388,608 bytes"),
    ("store", {"content": "'\u00fc' * 10_000_000"}, r"[\d,]{9,} bytes"),
    ("store", {"content": "'a\\0b'"}, "holds NUL characters, so it is binary"),
    ("store", {"content": "'x'", "tags": "[str(n) for n in range(10_000)]"}, "10,000 tags are too"),
    ("store", {"content": "'x'", "tags": "['t' * 101]"}, "A tag has 101 characters"),
    ("search", {"query": "'x'", "limit": "-1"}, "`limit` is a whole number|--limit takes a number"),
    ("search", {"query": "'x'", "limit": "10 ** 9"}, "`limit` is a whole number from 0 to 1,000"),
    ("search", {"query": "'word ' * 20_000"}, "and 10,000 is the limit"),
    ("list", {"limit": "-5"}, "`limit` is a whole number|--limit takes a number"),
    ("list", {"offset": "-5"}, "`offset` is a whole number"),
]


def test_what_cannot_be_kept_is_refused_with_a_clear_message(
    ask: Door, memory_user: MemoryHome
) -> None:
    ask("store", content="'kept'")
    before = memory_user.daemons
    for verb, given, words in REFUSED:
        said = ask(verb, **given)
        assert said.is_refused, (verb, given, said.text[:500])
        assert re.search(words, said.text), (verb, given, said.text[:500])
        assert len(said.text) < 1_000

    assert "kept" in ask("list").text
    assert "1 of 1 note" in ask("list").text or "total=1" in ask("list").text
    assert memory_user.daemons == before


STORED = [
    "'\U0001f98a \u202eright to left\u202c \u0065\u0301 \ufeff\u200b \ud55c\uad6d\uc5b4'",
    "'half of a pair: \\ud800.'",
    '"\'; DROP TABLE notes; --"',
    "'\"unbalanced AND (NEAR'",
    "'\x1b[31mred\x1b[0m \\x07'",
]
QUERIES = [
    "'\"'",
    "'\"unbalanced AND ('",
    '"\' OR 1=1; DROP TABLE notes; --"',
    "'NEAR(a b, 2) * ^ -'",
    "'content: {a b} : *'",
    "'AND OR NOT'",
    "'***'",
    "'\\ud800'",
    "'\U0001f98a'",
    "'%_%'",
]


def test_what_looks_odd_is_kept_and_queries_are_words_and_nothing_else(
    ask: Door, memory_user: MemoryHome
) -> None:
    is_possible = [is_kept_or_refused(ask("store", content=content)) for content in STORED]
    for query in QUERIES:
        said = ask("search", query=query)
        assert not said.is_refused or is_kept_or_refused(said), (query, said.text)

    listed = ask("list").text
    assert all(is_possible)
    assert "DROP TABLE notes" in listed
    assert "unbalanced AND (NEAR" in listed
    assert "\U0001f98a" in listed
    assert memory_user.read("PRAGMA integrity_check") == [("ok",)]


def is_kept_or_refused(said: Said) -> bool:
    """Whether a note was stored; or refused where half of a pair cannot even be sent."""
    is_stored = bool(re.search(r"\b[0-9a-f]{8}\b", said.text)) and not said.is_refused
    return is_stored or "hex escape" in said.text or "not text in UTF-8" in said.text


def test_a_daemon_outlives_whoever_speaks_nonsense_to_it(memory_user: MemoryHome) -> None:
    memory_user.script("daemon", "from toolfold import api; api.health()")
    daemon = memory_user.daemon()
    code = """
import os
from toolfold.relay.client import DaemonClient
from toolfold.relay.manifest import base_environ
world = {"cwd": os.getcwd(), "config": None, "set": [], "environ": base_environ(os.environ)}
asking = DaemonClient(world, os.environ)
for question in (
    {}, {"verb": 5}, {"verb": "memory.search"}, {"verb": "no.such", "arguments": {}},
    {"verb": "memory.search", "arguments": [1]}, {"verb": "memory.__init__", "arguments": {}},
    {"verb": "memory.health", "namespace": 7}, {"verb": "memory.health", "namespace": "x" * 5000},
    {"verb": "memory.health", "arguments": {"self": 1}},
    {"verb": "memory.search", "arguments": {"query": {"a": 1}}},
    {"verb": "memory.search_iter", "arguments": {"query": "x", "page_size": -1}, "pages": True},
    {"verb": "memory.get", "arguments": {"hash": None}},
):
    [answer] = asking.ask(question)
    print(answer["error"]["code"])
[answer] = asking.ask({"verb": "memory.health"})
print(answer["value"]["status"])
asking.close()
"""

    told = memory_user.script("daemon", code)

    assert set(told[:-1]) == {"bad_input", "not_found"}
    assert told[-1] == "ok"
    assert memory_user.daemon() == daemon


def test_values_are_written_as_json_whatever_they_hold(memory_user: MemoryHome) -> None:
    done = subprocess.run(
        toolfold_command("memory", "search", "--json", "--", b"\xff\xfe odd"),  # type: ignore[arg-type]
        env=memory_user.environ,
        cwd=memory_user.project,
        capture_output=True,
        timeout=50,
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["total"] == 0
