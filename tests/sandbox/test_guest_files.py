"""Files of guest code, the same in both interpreters and at both levels of walls."""

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from guests import Host, host_modules, run_in, running_sandbox

from toolfold.jsontypes import Json
from toolfold.sandbox.sandbox import GuestCall, GuestOutcome
from toolfold.sandbox.trees import ReadOnlyTree, Roots
from toolfold.workspace.usage import Quota
from toolfold.workspace.workspace import Workspace

QUOTA = Quota(bytes=20_000_000, files=200, file_bytes=8_000_000)


class Texts:
    def entries(self, path: str) -> list[str] | None:
        return ["index.txt"] if path == "/servers" else None

    def read(self, path: str) -> str | None:
        return "tools\n" if path == "/servers/index.txt" else None


@pytest.fixture(scope="module", params=["monty", "namespaces", "landlock"])
async def sandbox(request: pytest.FixtureRequest, anyio_backend: str) -> AsyncIterator[Any]:
    tier = "monty" if request.param == "monty" else "cpython"
    level = "namespaces" if request.param == "monty" else request.param
    async with running_sandbox(tier=tier, level=level) as sandbox:
        yield sandbox


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "project", QUOTA)


async def run(sandbox: Any, workspace: Workspace, code: str) -> GuestOutcome:
    files = Roots({"servers": ReadOnlyTree(Texts(), "servers"), "workspace": workspace})
    async with sandbox.open({}, frozenset(), files=files) as session:
        return await run_in(session, code, Host())


async def test_files_are_settled_while_every_worker_is_taken(workspace: Workspace) -> None:
    async with (
        running_sandbox(workers=1) as sandbox,
        sandbox.open(host_modules(), frozenset(), files=Roots({"workspace": workspace})) as session,
    ):

        async def settle(call: GuestCall) -> Json:
            await session.settle()
            return workspace.read("a", 0, 10).decode()

        code = "import host\nf = open('a', 'w')\nf.write('1')\nhost.wait()"
        with anyio.fail_after(60):
            outcome = await run_in(session, code, Host({"wait": settle}))

    assert outcome.value == "1", outcome


WORKS: list[tuple[str, Json]] = [
    ("open('a', 'w').write('hé')\nopen('/workspace/a').read()", "hé"),
    ("with open('a', 'w') as f:\n    f.write('1')\n    f.write('2')\nopen('a').read()", "12"),
    ("open('a', 'w').write('1')\nf = open('a', 'a')\nf.write('2')\nf.close()\nopen('a').read()", "12"),
    ("open('new', 'a').close()\nimport os\nos.path.getsize('new')", 0),
    ("open('a', 'wb').write(b'\\x00\\xff')\nlist(open('a', 'rb').read())", [0, 255]),
    ("open('a', 'w').write('1\\n2\\n')\n[line.strip() for line in open('a')]", ["1", "2"]),
    ("import os\n[os.getcwd(), os.listdir(), os.listdir('/servers')]", ["/workspace", [], ["index.txt"]]),
    ("open('/servers/index.txt').read()", "tools\n"),
    ("import os\nos.makedirs('d/e', exist_ok=True)\nos.makedirs('d/e', exist_ok=True)\n"
     "open('d/e/f', 'w').write('x')\nos.rename('d/e/f', 'd/g')\nos.rmdir('d/e')\nos.listdir('d')", ["g"]),
    ("import os\nopen('a', 'w').write('x')\nos.remove('a')\nos.path.exists('a')", False),
    ("import os\nopen('a', 'w').write('1')\nopen('b', 'w').write('22')\nos.replace('b', 'a')\n"
     "[os.listdir(), os.path.getsize('a')]", [["a"], 2]),
    ("from pathlib import Path\np = Path('/workspace/d')\np.mkdir()\n(p / 'x.txt').write_text('hi')\n"
     "[(p / 'x.txt').read_text(), p.is_dir(), (p / 'x.txt').is_file(), (p / 'y').exists(), "
     "[q.name for q in p.iterdir()], (p / 'x.txt').stat().st_size]", ["hi", True, True, False, ["x.txt"], 2]),
    ("from pathlib import Path\nPath('a.csv').write_text('')\nPath('b.txt').write_text('')\n"
     "[p.name for p in Path('.').glob('*.csv')]", ["a.csv"]),
    ("import os\nos.makedirs('d/e')\nopen('d/e/f', 'w').close()\n"
     "[[where, dirs, files] for where, dirs, files in os.walk('/workspace/d')]",
     [["/workspace/d", ["e"], []], ["/workspace/d/e", [], ["f"]]]),
    ("import csv\nwith open('t.csv', 'w', newline='') as f:\n    w = csv.writer(f)\n"
     "    for row in [['a', 'b'], [1, 2]]:\n        w.writerow(row)\n"
     "list(csv.DictReader(open('t.csv')))", [{"a": "1", "b": "2"}]),
    ("import json\nwith open('j', 'w') as f:\n    json.dump({'a': [1]}, f)\njson.load(open('j'))", {"a": [1]}),
    ("open('big', 'w').write('x' * 3_000_000)\nlen(open('big').read())", 3_000_000),
    ("f = open('never closed', 'w')\nf.write('x')\n1", 1),
]  # fmt: skip


@pytest.mark.parametrize(("code", "value"), WORKS, ids=range(len(WORKS)))
async def test_files_are_used_as_python_uses_them(
    sandbox: Any, workspace: Workspace, code: str, value: Json
) -> None:
    outcome = await run(sandbox, workspace, code)

    assert outcome.failure is None, outcome.failure
    assert outcome.value == value
    assert list((workspace.root.parent / "drafts").glob("*")) == []
    assert workspace.usage().bytes == sum(status.size for _, status in workspace.files())


REFUSED = [
    ("open('none').read()", "FileNotFoundError"),
    ("open('/etc/passwd').read()", "FileNotFoundError|PermissionError"),
    ("open('../etc/passwd').read()", "FileNotFoundError|PermissionError"),
    ("open('/workspace/../../etc/passwd').read()", "FileNotFoundError|PermissionError"),
    ("open('/elsewhere', 'w')", "FileNotFoundError|PermissionError|OSError"),
    ("open('/servers/x', 'w')", "PermissionError.*only files to read"),
    ("import os\nos.remove('/servers/index.txt')", "PermissionError.*only files to read"),
    ("open('a\\nb', 'w')", "OSError.*control characters"),
    ("open('a\\0b', 'w')", "ValueError|OSError"),
    ("open('x' * 300, 'w')", "OSError.*255 bytes"),
    ("import os\nos.makedirs('/'.join(['d'] * 40))", "OSError.*32 deep"),
    ("import os\nos.makedirs('a/' + '/'.join(['d'] * 30))\nos.makedirs('b/' + '/'.join(['d'] * 30))\n"
     "os.rename('a', 'b/' + '/'.join(['d'] * 31))", "OSError.*32 deep"),
    ("open('/workspace', 'w')", "IsADirectoryError"),
    ("import os\nos.mkdir('d')\nopen('d').read()", "IsADirectoryError"),
    ("import os\nos.rmdir('/workspace')", "OSError"),
    ("import os\nos.mkdir('d')\nos.mkdir('d')", "FileExistsError"),
    ("open('d/x', 'w')", "FileNotFoundError"),
    ("open('link').read()", "PermissionError.*plain files"),
    ("open('link', 'w').write('x')", "PermissionError.*plain files"),
    ("open('folder/secret').read()", "NotADirectoryError"),
    ("open('hard').read()", "PermissionError.*plain files"),
    ("open('hard', 'a').write('x')", "PermissionError.*plain files|FileExistsError"),
    ("open('pipe').read()", "PermissionError.*plain files"),
    ("open('f', 'w').write('x' * 7_000_000)\nopen('f', 'a').write('x' * 2_000_000)", "OSError.*One file may hold"),
    ("for n in range(5):\n    open(f'f{n}', 'w').write('x' * 5_000_000)", "OSError.*limited to 20,000,000 bytes"),
    ("for n in range(300):\n    open(f'f{n}', 'w').close()", "OSError.*200 files"),
    ("import os\nfor n in range(300):\n    os.mkdir(f'f{n}')", "OSError.*200 files"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "error"), REFUSED, ids=range(len(REFUSED)))
async def test_what_must_not_be_is_refused_in_words_and_the_host_is_untouched(
    sandbox: Any, workspace: Workspace, tmp_path: Path, code: str, error: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    if any(word in code for word in ("link", "folder", "hard", "pipe")):
        plant(workspace, outside)

    outcome = await run(sandbox, workspace, code)

    assert outcome.failure is not None, outcome.value
    assert outcome.failure.kind == "error"
    assert re.match(error, outcome.failure.message), outcome.failure.message
    assert str(tmp_path) not in outcome.failure.message + outcome.failure.traceback
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("secret", "secret")]
    assert workspace.usage().bytes <= QUOTA.bytes


def plant(workspace: Workspace, outside: Path) -> None:
    workspace.make("plain")
    (workspace.root / "link").symlink_to(outside / "secret")
    (workspace.root / "folder").symlink_to(outside)
    os.link(outside / "secret", workspace.root / "hard")
    os.mkfifo(workspace.root / "pipe")


async def test_what_a_stopped_program_had_written_is_kept(
    sandbox: Any, workspace: Workspace
) -> None:
    code = "f = open('a', 'w')\nf.write('x' * 300_000)\nhost.wait()"
    files = Roots({"workspace": workspace})

    async def wait(_call: Any) -> Json:
        stop.cancel()
        await anyio.sleep_forever()

    with anyio.CancelScope() as stop:
        async with sandbox.open(host_modules(), frozenset(), files=files) as session:
            await run_in(session, f"import host\n{code}", Host({"wait": wait}))

    assert workspace.stat("a").size >= 262_144
    assert list((workspace.root.parent / "drafts").iterdir()) == []


async def test_another_run_sees_no_file_before_it_is_finished(
    sandbox: Any, workspace: Workspace
) -> None:
    seen: list[bytes] = []

    async def look(_call: Any) -> Json:
        seen.append(workspace.read("a"))
        return None

    workspace.save("a", b"old")
    files = Roots({"workspace": workspace})
    code = "import host\nwith open('a', 'w') as f:\n    f.write('n' * 300_000)\n    host.wait()\n    f.write('w')"
    async with sandbox.open(host_modules(), frozenset(), files=files) as session:
        outcome = await run_in(session, code, Host({"wait": look}))

    assert outcome.failure is None
    assert seen == [b"old"]
    assert workspace.stat("a").size == 300_001


LIBRARIES: list[tuple[str, Json]] = [
    ("import pandas as pd\npd.DataFrame({'a': [1, 2]}).to_csv('/workspace/p.csv', index=False)\n"
     "int(pd.read_csv('p.csv')['a'].sum())", 3),
    ("import zipfile\nwith zipfile.ZipFile('z.zip', 'w') as z:\n    z.writestr('in', 'hello')\n"
     "zipfile.ZipFile('z.zip').read('in').decode()", "hello"),
    ("import shutil, os\nopen('a', 'w').write('x')\nshutil.copy('a', 'b')\nshutil.copy2('a', 'c')\n"
     "shutil.move('c', 'd')\nos.makedirs('t/u')\nshutil.copytree('t', 't2')\nshutil.rmtree('t')\n"
     "sorted(os.listdir())", ["a", "b", "d", "t2"]),
    ("import gzip, json\nwith gzip.open('g', 'wt') as f:\n    json.dump([1], f)\njson.load(gzip.open('g', 'rt'))", [1]),
    ("import numpy as np\nnp.save('n.npy', np.arange(4))\nint(np.load('n.npy').sum())", 6),
    ("f = open('r', 'w+')\nf.write('hello')\nf.seek(1)\nf.write('E')\nf.seek(0)\nf.read()", "hEllo"),
    ("open('r', 'w').write('hello')\nf = open('r', 'r+b')\nf.seek(2)\nf.write(b'XY')\nf.truncate(4)\n"
     "f.close()\nopen('r').read()", "heXY"),
    ("open('x', 'x').close()\ntry:\n    open('x', 'x')\nexcept FileExistsError:\n    r = 'there'\nr", "there"),
    ("from pathlib import Path\nPath('t').touch()\nPath('t').touch()\n[Path('t').exists(), str(Path('t').resolve())]",
     [True, "/workspace/t"]),
    ("import os\nos.mkdir('d')\nos.chdir('d')\nopen('x', 'w').close()\nos.chdir('..')\n"
     "[os.getcwd(), os.path.exists('d/x'), os.path.samefile('d', './d'), os.access('d', os.W_OK)]",
     ["/workspace", True, True, True]),
    ("import threading, os\ndef write(n):\n    with open(f'f{n}', 'w') as f:\n        for _ in range(9):\n"
     "            f.write('x' * 50_000)\nall = [threading.Thread(target=write, args=(n,)) for n in range(6)]\n"
     "[t.start() for t in all]\n[t.join() for t in all]\n{os.path.getsize(f'f{n}') for n in range(6)}", [450_000]),
]  # fmt: skip


@pytest.mark.parametrize(("code", "value"), LIBRARIES, ids=range(len(LIBRARIES)))
async def test_libraries_of_real_python_use_them_too(
    sandbox: Any, workspace: Workspace, code: str, value: Json
) -> None:
    if type(sandbox).__name__ == "MontySandbox":
        pytest.skip("Monty has no libraries")
    outcome = await run(sandbox, workspace, code)

    assert outcome.failure is None, outcome.failure
    assert outcome.value == value


BITS = [
    "open('a', 'w').close()\nos.chmod('a', 0o4755)",
    "os.symlink('/etc/passwd', 'a')",
    "os.link('/etc/passwd', 'a')",
    "os.mkfifo('a')",
    "os.mknod('a', 0o600 | 0o020000, os.makedev(1, 5))",
    "os.open('a', os.O_CREAT | os.O_WRONLY)",
    "import sqlite3\nsqlite3.connect('/workspace/a').execute('create table t (a)')",
]


@pytest.mark.parametrize("code", BITS)
async def test_nothing_but_plain_files_can_be_made(
    sandbox: Any, workspace: Workspace, code: str
) -> None:
    if type(sandbox).__name__ == "MontySandbox":
        pytest.skip("Monty has no such functions")
    outcome = await run(sandbox, workspace, f"import os\n{code}")

    assert outcome.failure is not None
    assert all(path.lstat().st_mode & 0o7177 == 0 for path in workspace.root.glob("*"))
