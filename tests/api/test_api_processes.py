"""`toolfold.api` in scripts: how light it is, forks, exits, and a daemon that dies."""

import sqlite3
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from api.memory_home import MemoryHome, in_this_process
from relay.peer import kill, wait_until

from toolfold import api
from toolfold.api import door
from toolfold.api.door import _ProcessContext
from toolfold.errors import BadInput, NotFound, StoreError

HEAVY = "{'anyio', 'asyncio', 'mcp', 'mcp_types', 'numpy', 'pydantic', 'sqlite3', 'onnxruntime'}"


def test_one_connection_serves_all_calls_of_a_thread(
    module_home: MemoryHome, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_this_process(module_home, "daemon", project, monkeypatch)
    made: list[_ProcessContext] = []
    connect = _ProcessContext.connect
    monkeypatch.setattr(
        _ProcessContext, "connect", lambda world: (made.append(world), connect(world))[1]
    )
    name = api.store("once")
    for _ in range(5):
        assert api.get(name).content == "once"
    with pytest.raises(NotFound):
        api.get("00000000")
    with pytest.raises(BadInput):
        list(api.search_iter("x", page_size=0))
    assert len(list(api.search_iter("", page_size=1))) == 1

    assert len(made) == 1


def test_importing_it_and_a_search_through_a_warm_daemon_are_light(module_home: MemoryHome) -> None:
    module_home.script("daemon", "from toolfold import api; api.store('a fox in the wood')")
    code = f"""
        import resource, sys
        def resident_kb():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * resource.getpagesize() // 1024
        before = resident_kb()
        from toolfold import api
        assert api.search("fox").memories[0].preview == "a fox in the wood"
        print(sorted({HEAVY} & set(sys.modules)))
        print((resident_kb() - before) / 1024 < 10, resident_kb() - before, "kB more")
    """

    heavy, is_light, *_ = module_home.script("daemon", textwrap.dedent(code))

    assert heavy == "[]"
    assert is_light.startswith("True"), is_light


FORK = """
import multiprocessing, os, signal, sys
from toolfold import api
from toolfold.errors import StoreError

def child(name):
    signal.alarm(40)
    name = api.store(f"from {name}", tags="child")
    assert api.get(name).content.startswith("from ")
    assert api.search("parent").total >= 1

api.store_batch([f"note {n} from the parent" for n in range(3)])
pages = api.search_iter("", page_size=1)
next(pages)
process = os.fork()
if process == 0:
    child("a fork")
    try:
        list(pages)  # some may have arrived before
    except StoreError:
        pass
    sys.exit(0)  # an exit in order, with all that is to be closed
print(os.waitpid(process, 0)[1], len(list(pages)))
forking = multiprocessing.get_context("fork")
children = [forking.Process(target=child, args=(f"process {n}",)) for n in range(3)]
for each in children:
    each.start()
assert api.store("meanwhile")
for each in children:
    each.join()
print([each.exitcode for each in children])
print(api.search_by_tag("child").total, api.list().total)
"""


def test_forked_children_have_a_way_of_their_own(
    module_home: MemoryHome, way: str, project: Path
) -> None:
    told = module_home.script(way, FORK, cwd=project)

    assert told == ["0 2", "[0, 0, 0]", "4 8"]


FORK_WHILE_LOADING = """
import os, signal, sys, threading
from toolfold import api

api.store("the first note")  # from here on the model is being loaded
child = os.fork()
if child == 0:
    signal.alarm(40)
    assert api.search("first").total == 1
    os._exit(0)
print(os.waitpid(child, 0)[1], api.search("first").total)
"""


def test_a_fork_while_the_model_is_being_loaded_harms_nobody(own_home: MemoryHome) -> None:
    assert own_home.script("own", FORK_WHILE_LOADING) == ["0 1"]


def test_a_script_that_leaves_everything_open_ends_at_once_and_in_silence(
    module_home: MemoryHome, way: str, project: Path
) -> None:
    code = """
        import threading
        from toolfold import api
        api.store_batch([f"note {n}" for n in range(30)])
        left = api.search_iter("note", page_size=1)
        next(left)
        threads = [threading.Thread(target=api.store, args=(f"thread {n}",)) for n in range(4)]
        for each in threads: each.start()
        for each in threads: each.join()
        print(api.list().total)
    """

    assert module_home.script(way, textwrap.dedent(code), cwd=project) == ["34"]


def test_a_script_with_thousands_of_files_open_is_served(module_home: MemoryHome) -> None:
    code = """
        import resource
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 3000), most))
        files = [open("/dev/null") for _ in range(1500)]
        from toolfold import api
        print(api.health().status)
        for each in files: each.close()
    """

    assert module_home.script("daemon", textwrap.dedent(code)) == ["ok"]


def test_it_opens_the_store_itself_where_no_daemon_can_start(own_home: MemoryHome) -> None:
    own_home.home.mkdir(exist_ok=True)
    (own_home.home / "state").write_text("in the way of the log")

    told = own_home.script(
        "daemon", "from toolfold import api; api.store('x'); print(api.health().count)"
    )

    assert told == ["1"]
    assert own_home.daemons == set()


def test_a_wrong_configuration_is_named(own_home: MemoryHome) -> None:
    own_home.settings("[memory]\nweek_start = 'friday'\n")
    process = own_home.start("daemon", "from toolfold import api; api.health()")
    _, errors = process.communicate(timeout=50)

    assert process.returncode == 1
    assert "ConfigError" in errors
    assert "week_start" in errors


def test_a_daemon_that_ended_between_two_calls_is_followed_by_another(
    own_home: MemoryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_this_process(own_home, "daemon", own_home.project, monkeypatch)
    name = api.store("before")
    own_home.kill_daemon()

    assert api.get(name).content == "before"
    own_home.kill_daemon()
    assert api.delete(name) is True  # nothing was under way, so nothing is in doubt
    own_home.end_daemon_politely()
    assert api.restore(name) is True
    door.close()


@pytest.fixture
def dying_daemon(
    own_home: MemoryHome, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], threading.Thread]]:
    """Return what has the daemon killed as soon as it works on something it cannot finish."""
    in_this_process(own_home, "daemon", own_home.project, monkeypatch)
    api.store("kept")
    lock = sqlite3.connect(own_home.database, isolation_level=None, check_same_thread=False)

    def end() -> None:
        wait_until(lambda: (own_home.status() or {}).get("in_flight"), "the daemon works")
        kill(own_home.daemon())
        lock.execute("ROLLBACK")

    def begin() -> threading.Thread:
        lock.execute("BEGIN IMMEDIATE")  # from here on nobody else writes
        thread = threading.Thread(target=end)
        thread.start()
        return thread

    yield begin
    lock.close()
    door.close()


def test_what_may_be_done_twice_is_done_although_the_daemon_dies(
    dying_daemon: Callable[[], threading.Thread],
) -> None:
    killer = dying_daemon()
    name = api.store("stored in spite of all")
    killer.join()

    assert api.get(name).content == "stored in spite of all"
    assert api.list().total == 2


def test_of_anything_else_it_is_said_that_nobody_knows(
    dying_daemon: Callable[[], threading.Thread],
) -> None:
    kept = api.list().memories[0].hash
    killer = dying_daemon()
    with pytest.raises(StoreError, match=r"ended during memory\.delete; its outcome is unknown"):
        api.delete(kept)
    killer.join()

    assert api.delete(kept) is True


def test_pages_whose_daemon_died_end_with_an_error(
    own_home: MemoryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_this_process(own_home, "daemon", own_home.project, monkeypatch)
    # More than the socket holds, so that the daemon cannot have sent all.
    api.store_batch([f"note {number} {'long ' * 40}" for number in range(2_000)])
    pages = api.search_iter("", page_size=1)
    next(pages)
    own_home.kill_daemon()

    with pytest.raises(StoreError, match="daemon ended during memory"):
        list(pages)
    assert api.list().total == 2_000
    door.close()


def test_every_checkout_of_a_repository_has_the_same_notes_and_those_from_before(
    module_home: MemoryHome, way: str
) -> None:
    one, two = (module_home.directory(f"{way}-{name}") for name in ("one", "two"))
    ask = "from toolfold import api; print(sorted(m.preview for m in api.list().memories))"
    for place in (one, two):
        store = f"from toolfold import api; api.store('from {place.name[-3:]}')"
        assert module_home.script(way, store, cwd=place) == []
    assert module_home.script(way, ask, cwd=one) == ["['from one']"]

    address = f"example.org:ada/{way}.git"
    for place in (one, two):
        (place / ".git/config").write_text(f'[remote "origin"]\n\turl = git@{address}\n')
        module_home.script(way, ask, cwd=place)

    for place in (one, two):
        assert module_home.script(way, ask, cwd=place) == ["['from one', 'from two']"]
