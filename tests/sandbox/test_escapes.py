"""Hostile code, as tables. Each security bug adds its row first.

Rows of the first tables try to take more than they may: each must end in a failure of a clear
kind, within the limits, and the next run must work. Rows of the last try to reach what is not
theirs: whatever they do, nothing of the host may come out.
"""

import os
import re
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from guests import Host, process_of, run, running_sandbox, value_of
from support import python

from toolfold.errors import CodeRejected
from toolfold.jsontypes import Json
from toolfold.sandbox.monty import MontySandbox
from toolfold.sandbox.sandbox import GuestOutcome

GUEST_TIME_S = 0.5
SECRET = "s3cr3t-of-the-host"  # the word to look for, not a secret

DOUBLED = "a = ['x']\nfor _ in range(40):\n    a = [a, a]\n"
DEEP = "a = []\nfor _ in range(100_000):\n    a = [a]\n"
LOOP = "def f(*_):\n    while True:\n        pass\n"

# (name, code, kinds of failure): end at once, because they are foreseen.
FORESEEN = [
    ("a huge power", "len(str(2**10**9))", "memory"),
    ("a huge power, unused", "x = 2**10**9\nx % 7", "memory"),
    ("a huge shift", "1 << 10**10", "memory"),
    ("a huge text", "'a' * 10**10", "memory"),
    ("a huge text beyond 64 bits", "' ' * (1 << 60)", "memory"),
    ("a huge list", "[0] * 10**10", "memory"),
    ("huge bytes", "bytes(10**10)", "memory"),
    ("a text that doubles", "s = 'a'\nwhile True:\n    s += s", "memory"),
    ("a list that grows", "l = []\nwhile True:\n    l.append('x' * 1000)", "memory"),
    ("a dict that grows", "d = {}\nwhile True:\n    d[len(d)] = [1]", "memory"),
    ("a range made a list", "list(range(10**12))", "memory timeout"),
    ("a set that grows", "{i for i in range(10**9)}", "memory timeout"),
    ("a huge join", "''.join(['x' * 1000] * 10**8)", "memory"),
    ("a huge format width", "f'{1:>{10**10}}'", "memory"),
    ("a huge format precision", "f'{1.0:.{10**9}f}'", "memory"),
    ("a huge %-format", "'%1000000000d' % 1", "memory"),
    ("a huge zfill", "'1'.zfill(10**10)", "memory"),
    ("a huge decimal", "import decimal\ndecimal.getcontext().prec = 10**8\n"
     "decimal.Decimal(1) / decimal.Decimal(7)", "memory error"),
    ("a huge sample", "import random\nrandom.sample(range(10**9), 10**8)", "memory"),
    ("JSON that unfolds", "import json\njson.loads('[' + '0,' * 10**7 + '0]')", "memory timeout"),
    ("deep JSON", "import json\njson.loads('[' * 100_000 + ']' * 100_000)", "error"),
    ("deep TOML", "import tomllib\ntomllib.loads('a=' + '[' * 100_000)", "error"),
    ("a million coroutines", "import asyncio\nasync def f(): pass\n"
     "await asyncio.gather(*[f() for _ in range(10**6)])", "memory timeout"),
    ("endless recursion", "def f(): return f()\nf()", "error"),
    ("recursion through sort", "def f(x): return sorted([1], key=f)\nf(1)", "error"),
    ("recursion through repr", "class A:\n    def __repr__(self): return repr(self)\nrepr(A())",
     "error"),
    ("recursion through eval", "def f(): return eval('f()')\nf()", "error"),
    ("recursion through exec", "s = 'exec(s)'\nexec(s)", "error"),
    ("deep source in eval", "eval('(' * 100_000 + '1' + ')' * 100_000)", "error"),
    ("a pattern with backtracking", "import re\nre.match(r'(a*)*\\1b', 'a' * 40)", "error timeout"),
    ("a pattern that unfolds", "import re\nre.compile('((((a{1,100}){1,100}){1,100}){1,100})')",
     "error memory"),
    ("digits without end", "int('9' * 10**6)", "error"),
    ("a deep value compared", f"{DEEP}b = a\n{DEEP}a == b", "error memory"),
    ("an alias bomb as result", f"{DOUBLED}a", "value"),
    ("an alias bomb in a dict", "d = {}\nfor _ in range(40):\n    d = {1: d, 2: d}\nd", "value"),
    ("an alias bomb of tuples", "a = ('x',)\nfor _ in range(40):\n    a = (a, a)\na", "value"),
    ("an alias bomb in an object", "class A:\n    pass\na = A()\nfor _ in range(40):\n    b = A()\n"
     "    b.x = [a, a]\n    a = b\na", "value"),
    ("an alias bomb as argument", f"import host\n{DOUBLED}host.echo(a)", "value"),
    ("an alias bomb by keyword", f"import host\n{DOUBLED}host.echo(key=a)", "value"),
    ("an alias bomb awaited", f"import host\n{DOUBLED}await host.echo(a)", "value"),
    ("a deep value as result", f"{DEEP}a", "value"),
    ("a deep value as argument", f"import host\n{DEEP}host.echo(a)", "value"),
    ("a large value as argument", "import host\nhost.echo('x' * 30_000_000)", "value"),
    ("a large value as result", "'x' * 30_000_000", "value"),
    ("a million arguments", "import host\nhost.echo(*range(10**6))", "value memory"),
    ("calls without end", "import host\nwhile True:\n  try:\n    host.echo(1)\n"
     "  except BaseException:\n    pass", "calls"),
    ("gathered calls without end", "import host, asyncio\n"
     "await asyncio.gather(*[host.echo(i) for i in range(10**4)])", "calls"),
    ("names without end", "while True:\n  try:\n    nope\n  except NameError:\n    pass", "calls"),
    ("unknown functions without end", "while True:\n  try:\n    nope()\n"
     "  except BaseException:\n    pass", "calls"),
    ("sleep without end", "import time\nwhile True:\n    time.sleep(10)", "error"),
    ("a very long sleep", "import time\ntime.sleep(1e9)", "error"),
]  # fmt: skip

# (name, code): each takes the guest's time, and up to a second more where the interpreter
# cannot look at its clock.
ENDLESS = [
    ("a loop", "while True:\n    pass"),
    ("a loop that catches everything", "while True:\n  try:\n    while True: pass\n"
     "  except BaseException: pass"),
    ("a loop in finally", "try:\n    while True: pass\nfinally:\n    while True: pass"),
    ("a loop in a sort key", f"{LOOP}sorted([3, 1, 2], key=f)"),
    ("a loop in repr", "class A:\n    def __repr__(self):\n        while True: pass\nprint(A())"),
    ("a sum over a huge range", "sum(range(10**12))"),
    ("a text printed without end", "while True:\n    print('x' * 1000)"),
    ("squares without end", "x = 3\nwhile True:\n    x = x * x"),
]  # fmt: skip

ENDLESS_SOAK = [
    ("a loop in map", f"{LOOP}list(map(f, [1]))"),
    ("a loop in a method", "class A:\n    def m(self):\n        while True: pass\nA().m()"),
    ("a loop in a coroutine", "async def f():\n    while True: pass\nawait f()"),
    ("a loop in exec", "exec('while True: pass')"),
    ("a maximum over a huge range", "max(range(10**12))"),
    ("a list searched without end", "l = list(range(10**6))\nwhile True:\n    -1 in l"),
    ("a text replaced without end", "s = 'ab' * 10**6\nwhile True:\n    s = s.replace('ab', 'ba')"),
    ("permutations", "import itertools\nany(False for _ in itertools.permutations(range(13)))"),
    ("recursion that goes on", "def f():\n  try:\n    return f()\n  except RecursionError:\n"
     "    return f()\nf()"),
    ("an alias bomb to JSON", f"import json\n{DOUBLED}json.dumps(a)"),
    ("two alias bombs compared", f"{DOUBLED}b = a\n{DOUBLED}a == b"),
    ("an alias bomb to text", f"{DOUBLED}str(a)"),
    ("a key derived without end", "import hashlib\n"
     "hashlib.pbkdf2_hmac('sha256', b'a', b'b', 10**9)"),
    ("equal hashes", "class A:\n    def __init__(s, i): s.i = i\n    def __hash__(s): return 1\n"
     "d = {}\ni = 0\nwhile True:\n    i += 1\n    d[A(i)] = i"),
    ("short lines printed without end", "while True:\n    print('x')"),
    ("a huge modular power", "pow(3, 2**60000, 2**60001 - 1)"),
    ("a factorial", "import math\nwhile True:\n    math.factorial(10**5)"),
]  # fmt: skip

# (name, source): what stands in the code itself.
SOURCES = [
    ("deep brackets", "(" * 5_000 + "1" + ")" * 5_000),
    ("deep lists", "[" * 5_000 + "]" * 5_000),
    ("a hundred thousand signs", "-" * 100_000 + "1"),
    ("a hundred thousand terms", "1" + "+1" * 100_000),
    ("sixty thousand nots", "not " * 60_000 + "1"),
    ("a chain of comparisons", "1" + "<1" * 100_000),
    ("a chain of attributes", "a" + ".a" * 100_000),
    ("a chain of calls", "a" + "()" * 100_000),
    ("twenty thousand branches", "if 0: pass\n" + "elif 0: pass\n" * 20_000),
    ("deep blocks", "".join("\t" * i + "if 1:\n" for i in range(1_000)) + "\t" * 1_000 + "pass"),
    ("deep lambdas", "lambda: " * 20_000 + "1"),
    ("a megabyte of text", "x = '" + "a" * 1_000_000 + "'"),
    ("many statements", "x = 0\n" * 43_000),
    ("a huge number", "9" * 250_000),
]


# (name, code). `{outside}` is the path of a file of the host.
ESCAPES = [
    ("reads a file", "open('{outside}').read()"),
    ("reads a file by path", "from pathlib import Path\nPath('{outside}').read_text()"),
    ("reads a file by a way around", "open('/tmp/../{outside}').read()"),
    ("reads a file with a zero", "open('{outside}\\0.txt').read()"),
    ("reads a file by number", "open(0).read()"),
    ("writes a file", "open('{outside}', 'w').write('changed')"),
    ("appends to a file", "from pathlib import Path\nPath('{outside}').write_text('changed')"),
    ("deletes a file", "import os\nos.remove('{outside}')"),
    ("renames a file", "import os\nos.rename('{outside}', '{outside}.old')"),
    ("links a file", "import os\nos.symlink('{outside}', '/tmp/link')\nopen('/tmp/link').read()"),
    ("lists a directory", "import os\nos.listdir('/')"),
    ("walks the file system", "import os\nlist(os.walk('/'))"),
    ("looks for a file", "from pathlib import Path\nPath('{outside}').exists()"),
    ("reads the home directory", "from pathlib import Path\nlist(Path.home().iterdir())"),
    ("reads its own environment", "open('/proc/self/environ').read()"),
    ("reads the host's environment", "import os\nopen(f'/proc/{{os.getppid()}}/environ').read()"),
    ("reads the environment", "import os\ndict(os.environ)"),
    ("reads one variable", "import os\nos.getenv('HOST_SECRET')"),
    ("reads random bytes of the host", "import os\nos.urandom(10)"),
    ("runs a command", "import os\nos.system('id')"),
    ("runs a command by import", "__import__('os').system('id')"),
    ("imports in eval", "eval(\"__import__('os').getpid()\")"),
    ("forks", "import os\nos.fork()"),
    ("kills", "import os\nos.kill(1, 9)"),
    ("opens a socket", "import socket\nsocket.create_connection(('10.0.0.1', 80))"),
    ("starts a process", "import subprocess\nsubprocess.run(['id'])"),
    ("calls C", "import ctypes\nctypes.CDLL(None)"),
    ("starts a thread", "import threading\nthreading.Thread(target=print).start()"),
    ("fetches a page", "import urllib.request\nurllib.request.urlopen('http://10.0.0.1')"),
    ("loads a pickle", "import pickle\npickle.loads(b'')"),
    ("asks for input", "input()"),
    ("starts a debugger", "breakpoint()"),
    ("walks the classes", "().__class__.__bases__[0].__subclasses__()"),
    ("walks from a type", "type(1).__mro__[-1].__subclasses__()"),
    ("walks from a function", "(lambda: 0).__globals__"),
    ("walks from code", "(lambda: 0).__code__.co_consts"),
    ("walks from an exception", "try:\n    1/0\nexcept Exception as e:\n"
     "    e.__traceback__.tb_frame.f_globals"),
    ("walks from a tool", "import host\nhost.echo.__globals__"),
    ("walks from a tool's self", "import host\nhost.echo.__self__"),
    ("walks from a module", "import host\nhost.__dict__"),
    ("walks from a module's loader", "import host\nhost.__loader__"),
    ("walks from a name of the host", "show.__globals__"),
    ("walks by format", "'{{0.__class__.__init__.__globals__}}'.format(print)"),
    ("walks by format from a tool", "import host\n'{{0.__globals__}}'.format(host.echo)"),
    ("walks by getattr", "import host\ngetattr(host.echo, '__' + 'globals__')"),
    ("walks the frames", "import sys\nsys._getframe()"),
    ("reads the modules", "import sys\nsys.modules"),
    ("reads the path", "import sys\nsys.path"),
    ("reads the builtins", "__builtins__"),
    ("reads the globals", "globals()"),
    ("changes a class", "class A: pass\nA().__class__ = int"),
    ("ends the process", "import os\nos._exit(0)"),
    ("raises SystemExit", "raise SystemExit"),
    ("raises KeyboardInterrupt", "raise KeyboardInterrupt"),
    ("raises GeneratorExit", "raise GeneratorExit"),
    ("plays a limit", "raise MemoryError('memory limit exceeded')"),
    ("imports the gate of the checker", "import _toolfold_gate"),
    ("calls a tool that is not there", "import host\nhost.nope()"),
    ("calls by a made-up path", "import host\nhost.echo.__call__(1)"),
    ("calls the host's own sleep", "sleep('x')"),
    ("replaces a tool", "import host\nhost.echo = 1\nhost.echo()"),
]  # fmt: skip


@pytest.fixture(scope="module")
async def small(anyio_backend: str) -> AsyncIterator[MontySandbox]:
    async with running_sandbox(guest_time_s=GUEST_TIME_S, calls=200, sleep_s=1.0) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
async def unhurried(anyio_backend: str) -> AsyncIterator[MontySandbox]:
    async with running_sandbox(guest_time_s=20 * GUEST_TIME_S, calls=200, sleep_s=1.0) as sandbox:
        yield sandbox


async def ended(sandbox: MontySandbox, code: str, host: Host | None = None) -> GuestOutcome:
    """Run hostile code, which must end, and see that the next run works."""
    with anyio.fail_after(60):
        outcome = await run(sandbox, code, host)
        assert await value_of(sandbox, "1 + 1") == 2
    return outcome


@pytest.mark.parametrize(
    ("code", "kinds"), [pytest.param(code, kinds, id=name) for name, code, kinds in FORESEEN]
)
async def test_what_takes_too_much_fails_clearly_and_the_next_run_works(
    small: MontySandbox, unhurried: MontySandbox, code: str, kinds: str
) -> None:
    outcome = await ended(small if "timeout" in kinds else unhurried, code)

    assert outcome.failure is not None
    assert outcome.failure.kind in kinds.split()
    assert outcome.failure.message


@pytest.mark.parametrize("code", [pytest.param(code, id=name) for name, code in ENDLESS])
async def test_what_never_ends_is_ended_and_the_next_run_works(
    small: MontySandbox, code: str
) -> None:
    outcome = await ended(small, code)

    assert outcome.failure is not None
    assert outcome.failure.kind == "timeout"


async def test_an_alias_bomb_printed_meets_the_clock_or_the_memory_limit(
    small: MontySandbox,
) -> None:
    outcome = await ended(small, f"{DOUBLED}print(a)")

    assert outcome.failure is not None
    assert outcome.failure.kind in {"timeout", "memory"}  # whichever it reaches first


@pytest.mark.soak
@pytest.mark.parametrize("code", [pytest.param(code, id=name) for name, code in ENDLESS_SOAK])
async def test_whatever_else_never_ends_is_ended(small: MontySandbox, code: str) -> None:
    outcome = await ended(small, code)

    assert outcome.failure is not None
    assert outcome.failure.kind in {"timeout", "memory"}


@pytest.mark.parametrize("source", [pytest.param(source, id=name) for name, source in SOURCES])
async def test_hostile_source_is_refused_or_run_and_the_next_run_works(
    small: MontySandbox, source: str
) -> None:
    message = await what_is_said_of(small, source)

    assert message is None or re.search("parse|long|nested|memory|Error", message)
    assert await value_of(small, "1 + 1") == 2


async def what_is_said_of(sandbox: MontySandbox, source: str) -> str | None:
    try:
        outcome = await ended(sandbox, source)
    except CodeRejected as rejection:
        return str(rejection)
    return outcome.failure.message if outcome.failure else None


async def test_a_flood_of_output_is_cut_and_leaves_room_for_the_next_run(
    small: MontySandbox,
) -> None:
    outcome = await ended(small, "print('x' * 20_000_000)\nprint('end')")

    assert outcome.failure is None
    assert len(outcome.output) == 1 << 20
    assert outcome.output_dropped == 20_000_001 + 4 - (1 << 20)


@pytest.mark.parametrize("code", [pytest.param(code, id=name) for name, code in ESCAPES])
async def test_nothing_of_the_host_comes_out(
    small: MontySandbox, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text(SECRET, encoding="utf-8")
    monkeypatch.setenv("HOST_SECRET", SECRET)
    host = Host()

    outcome = await ended(small, code.format(outside=outside), host)

    assert reached_nothing(outcome)
    assert SECRET not in repr((outcome, host.calls))
    assert contents(tmp_path) == {"outside.txt": SECRET}


def contents(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in directory.iterdir()}


def reached_nothing(outcome: GuestOutcome) -> bool:
    """Whether the code failed, or ended with a value that says nothing of the host."""
    if outcome.failure is not None:
        return not re.search("Traceback|SyntaxError", outcome.failure.message)
    return outcome.value in HARMLESS


HARMLESS: list[Json] = [None, "", [], {}, False]


async def test_workers_have_no_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOST_SECRET", SECRET)

    async with running_sandbox() as sandbox, sandbox.open({}, frozenset()) as session:
        environment = await anyio.Path(f"/proc/{process_of(session)}/environ").read_bytes()

    assert SECRET.encode() not in environment


async def test_a_guest_sees_nothing_of_another_guest(small: MontySandbox) -> None:
    hide = f"import json, host\nkept = '{SECRET}'\nprint.x = 1\n"
    search = "import sys\n[name for name in ('kept', 'host') if name in str(sys.modules)]"

    await run(small, hide)
    outcome = await run(small, "kept")
    second = await run(small, search)

    assert outcome.failure is not None
    assert SECRET not in repr((outcome, second))


HASH_BOMBS = [
    ("nested tuples", "a = (1,)\nfor _ in range(60):\n    a = (a, a)\n{a}"),
    ("numbers of one hash", "{i * (2**61 - 1): 1 for i in range(60_000)}"),
]


@pytest.mark.parametrize("code", [pytest.param(code, id=name) for name, code in HASH_BOMBS])
def test_a_value_that_is_dear_to_hash_ends_the_host_instead_of_stalling_it(
    code: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [python(), "-m", "toolfold", "run", "--set", "limits.stall_s=2", "-c", code],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TOOLFOLD_NO_DAEMON": "1"},
        cwd=tmp_path, capture_output=True, text=True, timeout=50,
    )  # fmt: skip

    assert done.returncode == 1
    assert "Timeout" in done.stderr
