"""The module `workspace`, as runs use it beside what they write."""

import base64

import anyio
import pytest
from support import MakeApp

TIERS = pytest.mark.parametrize("sandbox", ["monty", "cpython"])
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
)


@TIERS
async def test_a_run_finds_what_it_wrote_through_the_module_too(
    sandbox: str, running: MakeApp
) -> None:
    async with running({}, sandbox=sandbox) as toolfold:
        result = await toolfold.run(
            "import workspace\n"
            "with open('n.csv', 'w') as file:\n    file.write('a,b\\n1,2\\n')\n"
            "[workspace.count('n.csv'), len(workspace.list()), workspace.records('n.csv'),\n"
            " workspace.read('n.csv'), workspace.describe('n.csv')['columns'],\n"
            " workspace.remove('n.csv'), workspace.list()]"
        )

    assert result.value == [1, 1, [{"a": "1", "b": "2"}], "a,b\n1,2\n", ["a", "b"], 1, []], result


@TIERS
async def test_gathered_calls_and_calls_by_another_spelling_find_it_as_well(
    sandbox: str, running: MakeApp
) -> None:
    async with running({}, sandbox=sandbox) as toolfold:
        result = await toolfold.run(
            "import asyncio, workspace\n"
            "open('a', 'w').write('1\\n')\nopen('b', 'w').write('1\\n2\\n')\n"
            "found = await asyncio.gather(workspace.count('a'), workspace.count('b'))\n"
            "open('c', 'w').write('1\\n2\\n3\\n')\n"
            "[*found, mcp__workspace__count(path='c')]"
        )

    assert result.value == [1, 2, 3], result


@TIERS
async def test_what_is_written_after_a_look_goes_into_the_same_file(
    sandbox: str, running: MakeApp
) -> None:
    async with running({}, sandbox=sandbox) as toolfold:
        result = await toolfold.run(
            "import workspace\nfile = open('a', 'w')\nfile.write('1\\n')\nfile.flush()\n"
            "first = workspace.count('a')\nfile.write('2\\n')\nfile.close()\n"
            "[first, workspace.count('a'), open('a').read()]"
        )

    assert result.value == [1, 2, "1\n2\n"], result


@TIERS
async def test_an_image_that_a_run_wrote_can_be_shown(sandbox: str, running: MakeApp) -> None:
    async with running({}, sandbox=sandbox) as toolfold:
        result = await toolfold.run(
            f"with open('dot.png', 'wb') as file:\n    file.write({PIXEL!r})\n"
            "show('/workspace/dot.png')"
        )

    assert result.success, result
    assert [base64.b64decode(image.base64) for image in result.images] == [PIXEL]


LINES = b"[1]\n" * 4_000_000  # a quarter of a minute of work, or so


async def test_a_run_that_looks_at_large_files_leaves_others_their_turn(running: MakeApp) -> None:
    async with running({}) as toolfold, anyio.create_task_group() as hogs:
        toolfold.app.workspace.save("large.jsonl", LINES)
        begun = anyio.Event()

        async def hog() -> None:
            await toolfold.app.runtime.run(
                "import asyncio, workspace\n"
                "await asyncio.gather(*[workspace.count('large.jsonl') for _ in range(60)])",
                on_progress=lambda done, _total, _note: begun.set() if done == 60 else None,
            )

        hogs.start_soon(hog)
        await begun.wait()
        with anyio.fail_after(60):
            other = await toolfold.run("import workspace\nlen(workspace.list())")
        hogs.cancel_scope.cancel()

    assert other.value == 1, other


async def test_a_run_that_is_cancelled_stops_looking_at_files(running: MakeApp) -> None:
    async with running({}) as toolfold:
        toolfold.app.workspace.save("large.jsonl", LINES * 4)
        begun = anyio.Event()

        async def look() -> None:
            await toolfold.app.runtime.run(
                "import workspace\nworkspace.count('large.jsonl')",
                on_progress=lambda *_: begun.set(),
            )

        async with anyio.create_task_group() as looking:
            looking.start_soon(look)
            await begun.wait()
            await anyio.sleep(0.5)
            cancelled_at = anyio.current_time()
            looking.cancel_scope.cancel()
        took_s = anyio.current_time() - cancelled_at

    assert took_s < 5  # of a minute
