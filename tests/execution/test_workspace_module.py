"""The module `workspace`, as runs use it beside what they write."""

import base64

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
