"""`toolfold.Client` against a real `toolfold serve`, and against doors that break."""

import json
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate

import pytest
from http_daemon import Serving, serve_command, serving
from support import free_port, test_server, write_config

import toolfold
from toolfold import errors
from toolfold.client.client import Client

OK = b'{"status":"ok","version":"1"}'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("client")
    config = write_config(folder / "mcp.json", {"null": test_server("null")})
    with serving(serve_command(config), home=folder / "home") as started:
        yield started


@pytest.fixture
def client(served: Serving) -> Iterator[Client]:
    with toolfold.Client(served.root) as opened:
        yield opened


def test_importing_toolfold_loads_nothing_and_using_the_client_only_the_standard_library() -> None:
    code = """
import sys
import toolfold
assert not [name for name in sys.modules if name.startswith("toolfold.")], sys.modules
before = set(sys.modules)
toolfold.Client
foreign = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(foreign - set(sys.stdlib_module_names)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "['toolfold']"
    assert toolfold.__all__ == ["Client", "ToolfoldError"]
    assert toolfold.ToolfoldError is errors.ToolfoldError
    with pytest.raises(AttributeError):
        toolfold.client_that_is_not_there  # noqa: B018


def test_tools_are_discovered_listed_described_and_called(client: Client) -> None:
    categories = client.discover_tools().categories
    page = client.list_tools("null")
    echo = client.get_tool("null.echo")

    assert categories["null"].count == 2
    assert [tool.name for tool in page.tools] == ["null.echo", "null.put"]
    assert page.next_offset is None
    assert [(each.name, each.required) for each in echo.parameters] == [("value", True)]
    assert echo.read_only
    assert client.call_tool("null.put", {"value": [1, None]}) == {"value": [1, None], "count": 1}
    assert client.health()["status"] == "ok"


def test_iterators_give_every_item_of_every_page_once(client: Client) -> None:
    tools = [tool.name for tool in client.iter_tools()]
    notes = [{"content": f"note {number}", "tags": ["many"]} for number in range(250)]
    client.call_tool("memory.store_batch", {"notes": notes})
    for number in range(230):
        client.record_event("tick", str(number), session_id="pages")
    seen = [memory.preview for memory in client.iter_memories(["many"])]
    events = [event.preview for event in client.iter_events(session_id="pages")]
    listed = list(client.iter_runs())
    runs = [run.id for run in listed]

    assert len(tools) == len(set(tools)) == client.discover_tools().total_tools
    assert sorted(seen) == sorted(note["content"] for note in notes)
    assert events == [str(number) for number in reversed(range(230))]
    assert len(runs) == len(set(runs)) >= 1
    assert {run.state for run in listed} == {"done"}


def test_code_runs_and_its_calls_are_heard_of_on_the_way(client: Client) -> None:
    heard: list[str] = []
    run = client.execute("import null\nprint(null.echo(value=1))\n[1, 2]")
    streamed = client.execute(
        "import null\nnull.echo(value=1)\n7", on_progress=lambda _count, call: heard.append(call)
    )
    failed = client.execute("1 / 0")

    assert (run.success, run.output, run.value) == (True, "1\n", [1, 2])
    assert [(count.tool, count.completed) for count in run.calls] == [("null.echo", 1)]
    assert (streamed.value, heard) == (7, ["null.echo 1"])
    assert failed.error is not None
    assert "ZeroDivisionError" in failed.error.message


def test_memory_events_and_the_graph_come_back_typed(client: Client) -> None:
    note = client.remember("The port of staging is 5433", tags=["db"], importance=0.9)
    again = client.remember("The port of staging is 5433")
    [found] = client.recall("port of staging", limit=1).memories
    [explained] = client.recall("port of staging", limit=1, explain=True).memories
    event = client.record_event("deploy", outcome="ok", duration_ms=12)
    [recalled] = client.recall_events(event_type="deploy", since="today").events
    ada = client.create_entity("Ada", "person", ["writes programs"])
    [entity] = client.search_graph("programs").entities
    done = client.consolidate("minimal", dry_run=True)

    assert note == again == found.hash
    assert found.tags == ("db",)
    assert "why" in explained._fields
    assert (recalled.id, recalled.duration_ms) == (event, 12)
    assert ada.observations == entity.observations == ("writes programs",)
    assert done.strategy == "minimal"
    assert client.forget(note) is True
    assert client.forget(note) is False


def test_failures_are_raised_as_the_errors_that_they_were(client: Client) -> None:
    with pytest.raises(errors.NotFound, match="Did you mean"):
        client.get_tool("null.ecko")
    with pytest.raises(errors.BadCall, match="needs parameter 'value'"):
        client.call_tool("null.echo")
    with pytest.raises(errors.BadInput, match="limit"):
        client.recall("a", limit=5_000)
    with pytest.raises(errors.BadInput, match="JSON"):
        client.call_tool("null.echo", {"value": float("nan")})
    for address in ("127.0.0.1:8765", "http://h:abc", "http://h:99999", "http://[::1"):
        with pytest.raises(errors.BadInput, match="like http"):
            Client(address)


def test_a_wrong_key_is_refused_with_its_code(served: Serving) -> None:
    with Client(served.root, key="tf_wrong") as client:
        with pytest.raises(errors.RequestFailed, match="is unknown") as refused:
            client.health()

    assert refused.value.code == "bad_key"


def test_nobody_there_is_said_in_a_sentence() -> None:
    with Client(f"http://127.0.0.1:{free_port()}", retries=1) as client:
        with pytest.raises(errors.RequestFailed, match="Does `toolfold serve` run there"):
            client.health()


class Door:
    """Answers requests with what it was told to, one connection each; it counts them."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = [*answers]
        self.requests: list[str] = []
        self.hung_up = threading.Semaphore(0)
        self.heard = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        for answer in self.answers:
            link, _ = self.listener.accept()
            with link:
                with link.makefile("rb") as request:
                    head = [*iter(request.readline, b"\r\n")]
                    sizes = [line.split()[1] for line in head if line.startswith(b"Content-Length")]
                    request.read(int(sizes[0]) if sizes else 0)  # left unread, it would be a reset
                self.requests.append(head[0].decode().strip())
                if answer is not None:  # else hang up
                    link.sendall(answer)
                if answer is LOST:
                    self.heard.wait(60)
                    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.hung_up.release()

    def close(self) -> None:
        self.listener.close()
        self._thread.join(10)


def answer(status: int, body: bytes = OK) -> bytes:
    head = f"HTTP/1.1 {status} x\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


@contextmanager
def opened(*answers: bytes | None) -> Iterator[Door]:
    door = Door(*answers)
    try:
        yield door
    finally:
        door.close()


EVENT = b'event: progress\ndata: {"calls": 1, "call": "a.b 1"}\n\n'
LOST = b"HTTP/1.1 200 x\r\nContent-Length: 1000\r\n\r\n" + EVENT
BUSY = answer(503, json.dumps({"error": {"code": "store", "message": "busy"}}).encode())


def test_what_is_safe_is_tried_again_when_the_door_hangs_up_or_is_busy() -> None:
    with opened(None, BUSY, answer(200)) as door, Client(door.url) as client:
        assert client.health()["status"] == "ok"
        assert len(door.requests) == 3
    stored = answer(201, b'{"hash":"abcd1234"}')
    with opened(None, stored) as door, Client(door.url) as client:
        assert client.remember("a") == "abcd1234"
        assert len(door.requests) == 2


def test_what_is_not_safe_is_asked_once_whatever_happens() -> None:
    with opened(None) as door, Client(door.url) as client:
        with pytest.raises(errors.RequestFailed):
            client.call_tool("null.put", {"value": 1})
        assert door.requests == ["POST /tools/null.put/execute HTTP/1.1"]
    with opened(BUSY) as door, Client(door.url) as client:
        with pytest.raises(errors.StoreError, match="busy"):
            client.record_event("deploy")
        assert len(door.requests) == 1


def too_many(when: str) -> bytes:
    """Return the answer to somebody who asks too often."""
    body = json.dumps({"error": {"code": "too_many_requests", "message": "too often"}}).encode()
    head, rest = answer(429, body).split(b"\r\n", 1)
    return head + b"\r\nRetry-After: " + when.encode() + b"\r\n" + rest


@pytest.mark.parametrize("when", ["1", "a date"])
def test_a_door_that_says_when_to_come_again_is_believed(when: str) -> None:
    soon = formatdate(time.time() + 2, usegmt=True) if when == "a date" else when
    with opened(too_many(soon), answer(200)) as door, Client(door.url) as client:
        began = time.monotonic()
        assert client.health()["status"] == "ok"

        assert time.monotonic() - began >= 1
        assert len(door.requests) == 2


@pytest.mark.parametrize(
    ("when", "timeout_s", "said_s"), [("3600", 330, 3600), ("30", 5, 30), ("1e9", 330, 10**9)]
)
def test_nobody_waits_longer_than_a_minute_or_the_timeout(
    when: str, timeout_s: float, said_s: int
) -> None:
    with opened(too_many(when)) as door, Client(door.url, timeout_s=timeout_s) as client:
        with pytest.raises(errors.TooManyRequests, match="too often") as raised:
            client.health()

        assert raised.value.retry_after_s == said_s
        assert len(door.requests) == 1


@pytest.mark.parametrize("when", ["soon", "-5", "nan", "inf", ""])
def test_a_time_that_is_none_is_as_if_nothing_had_been_said(when: str) -> None:
    with opened(too_many(when), answer(200)) as door, Client(door.url) as client:
        assert client.health()["status"] == "ok"
        assert len(door.requests) == 2


def test_the_last_refusal_is_raised_when_trying_again_does_not_help() -> None:
    with opened(BUSY, BUSY) as door, Client(door.url, retries=1) as client:
        with pytest.raises(errors.StoreError, match="busy"):
            client.health()
        assert len(door.requests) == 2


def test_a_connection_that_was_closed_meanwhile_is_not_used_for_what_cannot_be_repeated() -> None:
    kept = b"HTTP/1.1 200 x\r\nContent-Length: %d\r\n\r\n%s" % (len(OK), OK)
    done = answer(200, b'{"run_id":"1","result":7,"blobs":{}}')
    with opened(kept, done) as door, Client(door.url) as client:
        client.health()  # the door hangs up after it, without having said so
        assert door.hung_up.acquire(timeout=60)
        assert client.call_tool("a.b") == 7
        assert [line.split()[0] for line in door.requests] == ["GET", "POST"]


def test_what_answers_and_is_no_toolfold_is_told_apart() -> None:
    with opened(answer(200, b"<html>")) as door, Client(door.url) as client:
        with pytest.raises(errors.RequestFailed, match="no answer of toolfold"):
            client.health()


@pytest.mark.parametrize("data", [b'data: {"a": ', b"data: \xff\xfe", b"data: " + b"[" * 100_000])
def test_a_stream_that_breaks_off_is_said_in_a_sentence(data: bytes) -> None:
    with opened(answer(200, b"event: call\n" + data)) as door, Client(door.url) as client:
        with pytest.raises(errors.RequestFailed, match="broke off"):
            client.execute("1", on_progress=lambda *_: None)


def test_a_connection_that_is_lost_in_the_midst_of_a_run_is_said_to_be() -> None:
    with opened(LOST) as door, Client(door.url) as client:
        with pytest.raises(errors.RequestFailed, match=r"broke off: .*; `iter_runs` may know"):
            client.execute("1", on_progress=lambda *_: door.heard.set())
        assert door.heard.is_set()


def test_what_goes_wrong_in_the_callers_own_function_is_raised_as_it_is(client: Client) -> None:
    def listen(*_: object) -> None:
        raise OSError("my disk is full")

    with pytest.raises(OSError, match="my disk is full"):
        client.execute("import null\nnull.echo(value=1)", on_progress=listen)


def test_threads_can_share_a_client(client: Client) -> None:
    found: list[str] = []

    def ask(number: int) -> None:
        found.append(str(client.call_tool("null.echo", {"value": f"thread {number}"})))

    threads = [threading.Thread(target=ask, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sorted(found) == [f'"thread {number}"' for number in range(8)]


def test_paths_and_queries_are_quoted(client: Client) -> None:
    with pytest.raises(errors.NotFound, match=r"a/\.\./b"):
        client.get_tool("a/../b?c#d")
    assert client.recall("50% & more # ü?").query == "50% & more # ü?"
