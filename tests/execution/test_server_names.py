"""A server keeps the name that its user gave it, and needs no import."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support import MakeApp, Running, scripted

from toolfold.execution.runtime import SessionRequest

HERE = SessionRequest("here")
READING = {"annotations": {"readOnlyHint": True}}
NOW = {"name": "get_current_time", "answers": ["noon"], **READING}


@pytest.fixture
async def app(running: MakeApp, tmp_path: Path) -> AsyncIterator[Running]:
    servers = {
        "time": scripted(tmp_path / "time.json", [NOW]),
        "calendar": scripted(
            tmp_path / "calendar.json", [{"name": "today", "answers": ["monday"]}]
        ),
        "memory": scripted(
            tmp_path / "memory.json", [{"name": "read_graph", "answers": ["theirs"]}]
        ),
        "tools": scripted(tmp_path / "tools.json", [{"name": "hammer", "answers": ["bang"]}]),
        "shop": scripted(tmp_path / "shop.json", [{"name": "count", "answers": ["seven"]}]),
        "filter": scripted(tmp_path / "filter.json", [{"name": "apply", "answers": ["clean"]}]),
    }
    async with running(servers) as app:
        yield app


PROGRAMS = {
    "without import": ("shop.count()", "seven"),
    "imported": ("import shop\nshop.count()", "seven"),
    "imported as": ("import shop as s\ns.count()", "seven"),
    "from": ("from shop import count\ncount()", "seven"),
    "in a function": ("def f():\n    return shop.count()\nf()", "seven"),
    "awaited": (
        "import asyncio\nawait asyncio.gather(shop.count(), shop.count())",
        '["seven", "seven"]',
    ),
    "the name of a standard module": ("time.get_current_time()", "noon"),
    "and imported": ("import time\ntime.get_current_time()", "noon"),
    "imported as something": ("import time as t\nt.get_current_time()", "noon"),
    "from it": ("from time import get_current_time, sleep\nsleep(0)\nget_current_time()", "noon"),
    "from it, over lines": (
        "from time import (\n    get_current_time,\n    sleep,\n)\nsleep(0)\nget_current_time()",
        "noon",
    ),
    "both, imported": ("import time\ntime.sleep(0)\ntime.get_current_time()", "noon"),
    "both, not imported": ("time.sleep(0)\ntime.get_current_time()", "noon"),
    "only the standard one": ("import time\ntype(time.time()).__name__", "float"),
    "a module that Monty lacks": ("import calendar\ncalendar.today()", "monday"),
    "its own variable": ("time = time.get_current_time()\ntime", "noon"),
    "a server's own variable": ("shop = shop.count()\nshop", "seven"),
    "a name bound by the program": ("shop = [1]\nshop.count(1)", "1"),
    "a parameter": ("def f(time):\n    return time.upper()\nf('x')", "X"),
    "a former name": ("import time_mcp\ntime_mcp.get_current_time()", "noon"),
    "a former name without import": ("memory_mcp.read_graph()", "theirs"),
    "the name of a module of ours": ("memory.read_graph()", "theirs"),
    "and imported, too": ("import memory\nmemory.read_graph()", "theirs"),
    "ours": ("toolfold.memory.health().count", "0"),
    "ours, imported": ("import toolfold\ntoolfold.memory.health().count", "0"),
    "ours, from": ("from toolfold import memory\nmemory.health().count", "0"),
    "ours, as": ("import toolfold.memory as m\nm.health().count", "0"),
    "ours that no server hides": ("len(toolfold.graph.read_graph()['entities'])", "0"),
    "a server called tools": ("tools.hammer()", "bang"),
    "and our tools": ("'time.get_current_time' in tools.search('time')", "true"),
    "ours by its full name": ("'shop' in toolfold.tools.servers()", "true"),
    "the name of a builtin": ("filter.apply()", "clean"),
    "the builtin itself": ("list(filter(None, [0, 1]))", "[1]"),
    "as clients write it": ("mcp__time__get_current_time()", "noon"),
    "no import of ours": ("tools.describe('shop.count').count('count') > 0", "true"),
}


async def test_a_program_finds_the_server_that_it_names(app: Running) -> None:
    results = {name: (await app.run(code)).text for name, (code, _) in PROGRAMS.items()}

    assert results == {name: expected for name, (_, expected) in PROGRAMS.items()}


async def test_names_of_the_session_win(app: Running) -> None:
    await app.run("shop, time = ['kept'], 'late'", session=HERE)

    assert (await app.run("shop[0] + time", session=HERE)).text == "keptlate"


async def test_a_module_that_was_used_without_import_is_there_later(app: Running) -> None:
    await app.run("def now():\n    return time.get_current_time()", session=HERE)

    assert (await app.run("now()", session=HERE)).text == "noon"
    assert (await app.run("time.sleep(0)\nnow()", session=HERE)).text == "noon"
    there = await app.run("import statistics\nstatistics.mean([1, 3])\nnow()", session=HERE)
    assert (there.tier, there.text) == ("cpython", "noon")


async def test_a_mistake_is_shown_as_it_was_written(app: Running) -> None:
    result = await app.run("x = time.get_current_time()\ntime.get_current_time()['hour']")

    assert "time.get_current_time()['hour']" in result.text
    assert "_mcp_" not in result.text
    missing = await app.run("time.get_curent_time()")
    assert "time.get_current_time" in missing.text
    assert "_mcp_" not in missing.text


async def test_a_skill_is_saved_as_it_was_written(app: Running) -> None:
    saved = await app.run(
        "def clock():\n    '''Tell the time.'''\n    return time.get_current_time()\n"
        "toolfold.skills.save('clock', 'clock', 'Tell the time.')\nclock()"
    )
    assert saved.text == "noon", saved.text

    used = await app.run("from skills import clock\nclock()")
    assert used.text == "noon"
    assert "_mcp_" not in (await app.run("skills.show('clock')")).text
