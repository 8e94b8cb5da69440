from typing import Any

import pytest
from support import MakeApp, test_server


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (
            "import os\nos.listdir('/servers')",
            ["index.txt", "graph", "memory", "null", "skills", "workspace"],
        ),
        ("import os\nos.listdir('/servers/null')", ["index.txt", "echo.pyi", "put.pyi"]),
        ("open('/servers/null/put.pyi').read().split('(')[0]", "def put"),
        ("len([x for x in open('/servers/index.txt').readlines() if x[:5] == 'null.'])", 2),
        ("[line[:8] for line in open('/servers/null/index.txt')]", ["null.ech", "null.put"]),
        (
            "from pathlib import Path\n[p.name for p in Path('/servers/null').glob('*.pyi')]",
            ["echo.pyi", "put.pyi"],
        ),
        (
            "from pathlib import Path\n"
            "Path('/servers').is_dir(), Path('/servers/null/put.pyi').is_file(), "
            "Path('/servers/none').exists()",
            [True, True, False],
        ),
    ],
)
async def test_the_catalog_can_be_browsed_as_files(code: str, value: Any, running: MakeApp) -> None:
    async with running({"null": test_server("null")}) as toolfold:
        await toolfold.app.catalog.learn()
        result = await toolfold.run(code)

    assert result.value == value, result.text


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("open('/servers/null/nothing.pyi')", "FileNotFoundError"),
        ("open('/servers/../etc/passwd').read()", "FileNotFoundError"),
        ("open('/etc/passwd').read()", "FileNotFoundError"),
        ("open('/servers')", "IsADirectoryError"),
        ("open('/servers/null/put.pyi', 'w')", "PermissionError"),
        ("open('/servers/new.txt', 'a')", "PermissionError"),
        ("from pathlib import Path\nPath('/x').mkdir()", "OSError: [Errno 30] Read-only"),
        ("from pathlib import Path\nPath('/servers/null/put.pyi').unlink()", "PermissionError"),
        ("import os\nos.listdir('/etc')", "FileNotFoundError"),
    ],
)
async def test_nothing_else_can_be_read_and_nothing_written(
    code: str, error: str, running: MakeApp
) -> None:
    async with running({"null": test_server("null")}) as toolfold:
        await toolfold.app.catalog.learn()
        result = await toolfold.run(code)

    assert result.error is not None
    assert result.error.message.startswith(error), result.text
