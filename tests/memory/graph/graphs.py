"""Graphs that run, the real server, and what random calls to both are made of."""

import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from stores import OpenBackend, open_sqlite
from support import node_server, python

from toolfold.memory.graph.encoding import GraphStore
from toolfold.memory.graph.models import Entity, Relation
from toolfold.memory.graph.service import Graph
from toolfold.memory.sql.graph import SqlGraphStore

OpenGraphStore = Callable[[Path], AbstractAsyncContextManager[GraphStore]]


def graph_store_opener(open_backend: OpenBackend) -> OpenGraphStore:
    """Return what opens the graphs of a directory; opened twice, they are the same ones."""

    @asynccontextmanager
    async def open_graphs(directory: Path) -> AsyncIterator[GraphStore]:
        async with open_backend(directory) as backend:
            yield SqlGraphStore(backend.database)

    return open_graphs


@asynccontextmanager
async def running_graph(
    directory: Path, namespace: str = "project", *, open_backend: OpenBackend = open_sqlite
) -> AsyncIterator[Graph]:
    async with open_backend(directory) as backend:
        graphs = SqlGraphStore(backend.database)
        yield Graph(graphs, backend.store, namespace=namespace, clock=lambda: 2000.0)


def entity(name: str, kind: str = "thing", *observations: str) -> Entity:
    return Entity(name, kind, observations)


def relation(source: str, kind: str, target: str) -> Relation:
    return Relation(source, target, kind)


def told(name: str, kind: str = "thing", *observations: str) -> dict[str, Any]:
    """Return an entity as `create_entities` takes it."""
    return {"name": name, "entityType": kind, "observations": list(observations)}


def related(source: str, kind: str, target: str) -> dict[str, Any]:
    """Return a relation as `create_relations` takes it."""
    return {"from": source, "to": target, "relationType": kind}


class McpProcess:
    """An MCP server on the other end of a pipe, asked one thing after the other."""

    def __init__(self, command: list[str], environ: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], **environ},
        )
        self._last = 0
        about = {"name": "test", "version": "1"}
        said = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
        self.greeting = self.ask("initialize", said)["result"]
        self._write({"method": "notifications/initialized"})

    def __enter__(self) -> "McpProcess":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def ask(self, method: str, params: Any = None) -> dict[str, Any]:
        """Return the whole answer to a request."""
        self._last += 1
        self._write({"id": self._last, "method": method, "params": params or {}})
        return self._answer(self._last)

    def call(self, tool: str, arguments: Any) -> dict[str, Any]:
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        result: dict[str, Any] = answer["result"]
        return result

    def pipeline(self, calls: list[tuple[str, Any]]) -> list[dict[str, Any]]:
        """Send all calls before reading an answer."""
        numbers = []
        for tool, arguments in calls:
            self._last += 1
            numbers.append(self._last)
            params = {"name": tool, "arguments": arguments}
            self._write({"id": self._last, "method": "tools/call", "params": params})
        found = {}
        while len(found) < len(calls):
            message = self._read()
            if message.get("id") in numbers:
                found[message["id"]] = message["result"]
        return [found[number] for number in numbers]

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def _answer(self, number: int) -> dict[str, Any]:
        while True:
            message = self._read()
            if message.get("id") == number:
                return message

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the server has ended"
        message: dict[str, Any] = json.loads(line)
        return message


def real_server(file: Path) -> McpProcess:
    """Start npm's server-memory over a file; skip the test where it is absent."""
    return McpProcess(node_server("memory"), {"MEMORY_FILE_PATH": str(file)})


@contextmanager
def toolfold_home(directory: Path) -> Iterator[dict[str, str]]:
    """Give the environment of a toolfold of its own; its daemon ends with it."""
    environ = {"TOOLFOLD_HOME": str(directory / "toolfold"), "HOME": str(directory)}
    try:
        yield environ
    finally:
        command = [python(), "-m", "toolfold", "stop", "--now"]
        env = {"PATH": os.environ["PATH"], **environ}
        subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)


def toolfold_graph(environ: dict[str, str], namespace: str = "project") -> McpProcess:
    """Start toolfold as a client does that used server-memory before."""
    options = ["--tools", "graph", "--namespace", namespace]
    return McpProcess([python(), "-m", "toolfold", "mcp", *options], environ)


# JavaScript may know letters that this Python does not, and tells U+0295 and U+1171E differently
# before and after a sigma.
_KNOWN = st.characters(exclude_categories=("Cn", "Cs"), exclude_characters="\u0295\U0001171e")
_ODD = st.sampled_from(
    'aAbB _"\\\n\t\0\x1f\x7fİ\u0131IßẞΣ\u03c3ςǅéÉ\u0307\u2028\ufeff\ufffd\uffff😀𐐀\ud83d\ude00'
)
TEXTS = st.one_of(
    st.sampled_from(["", "Ada", "ada", "Ada Lovelace", "Ada_Lovelace", "İstanbul", "straße"]),
    st.sampled_from(["ΟΔΟΣ", "coffee", "Coffee at nine", "a\0b", "\ud83d", "😀", "__proto__"]),
    st.text(_ODD, max_size=6),
    st.text(st.one_of(_ODD, _KNOWN), max_size=12),
)
NAMES = st.one_of(st.sampled_from(["Ada", "ada", "Bob", "", "İ", "\ud83d", "x\0"]), TEXTS)
_FEW_TEXTS = st.lists(TEXTS, max_size=4)
_ENTITY = st.builds(lambda n, k, o: told(n, k, *o), NAMES, TEXTS, _FEW_TEXTS)
_RELATION = st.builds(related, NAMES, st.sampled_from(["knows", "", "Σ"]), NAMES)
_ADDITION = st.builds(lambda n, c: {"entityName": n, "contents": c}, NAMES, _FEW_TEXTS)
_DELETION = st.builds(lambda n, o: {"entityName": n, "observations": o}, NAMES, _FEW_TEXTS)
_PARTS = st.builds(
    lambda text, start, length, change: change(text[start : start + length]),
    TEXTS,
    st.integers(0, 4),
    st.integers(0, 5),
    st.sampled_from([str, str.upper, str.lower]),
)


def _call(tool: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(st.just(tool), st.fixed_dictionaries(arguments))


GOOD_CALLS = st.one_of(
    _call("create_entities", entities=st.lists(_ENTITY, max_size=4)),
    _call("create_entities", entities=st.lists(_ENTITY, min_size=1, max_size=2)),
    _call("create_relations", relations=st.lists(_RELATION, max_size=4)),
    _call("add_observations", observations=st.lists(_ADDITION, max_size=3)),
    _call("delete_entities", entityNames=st.lists(NAMES, max_size=2)),
    _call("delete_observations", deletions=st.lists(_DELETION, max_size=3)),
    _call("delete_relations", relations=st.lists(_RELATION, max_size=3)),
    _call("read_graph"),
    _call("search_nodes", query=st.one_of(TEXTS, _PARTS)),
    _call("open_nodes", names=st.lists(NAMES, max_size=4)),
)

_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.floats(-1, 1), st.just("s")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["name", "entityType", "observations", "from", "to", "entityName", "extra"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=8,
)
BAD_CALLS = st.tuples(
    st.sampled_from(
        [
            *("create_entities", "create_relations", "add_observations", "delete_entities"),
            *("delete_observations", "delete_relations", "search_nodes", "open_nodes", "no_tool"),
        ]
    ),
    st.dictionaries(
        st.sampled_from(["entities", "relations", "observations", "names", "query", "deletions"]),
        _JSON,
        max_size=3,
    ),
)
CALLS = st.one_of(GOOD_CALLS, GOOD_CALLS, GOOD_CALLS, GOOD_CALLS, BAD_CALLS)
