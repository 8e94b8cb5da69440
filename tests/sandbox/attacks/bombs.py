"""Code that takes too much, as a table. All of it runs behind limits only.

Each row ends within its limits, in a failure of one of its kinds, or, where it catches what stops
it, with a value that says how far it came; and the next run works.
"""

from dataclasses import dataclass
from typing import Any, Final

from attacks.table import RAW


@dataclass(frozen=True, slots=True)
class Bomb:
    """Code that takes too much, and how that may end."""

    name: str
    code: str
    kinds: str = "memory"
    """Kinds of failure, of which one must come; `ends` if it may reach its end."""
    only: str = ""
    """The tier it is for, where it means nothing in the other."""
    slow: bool = False
    """Whether it takes all the time it may have."""
    most: int | None = None
    """The largest value that it may reach its end with."""
    fits: bool = True
    """Whether any machine could give it what it wants."""


DOUBLED: Final = "a = ['x']\nfor _ in range(40):\n    a = [a, a]\n"
DEEP: Final = "a = []\nfor _ in range(100_000):\n    a = [a]\n"
LOOP: Final = "def f(*_):\n    while True:\n        pass\n"
_MEMORY: Final = "memory error crash"  # Python's own MemoryError is an error like any other


def _until_it_fails(step: str, before: str = "", most: int = 100_000) -> str:
    """Return code that repeats `step` and says how often it worked."""
    return f"{before}\nn = 0\ntry:\n    while n < {most}:\n        {step}\n        n += 1\n" \
        "except BaseException:\n    pass\nn"  # fmt: skip


B = Bomb
# Each wants some hundred megabytes, several times what it may have, and would then come to its end.
MEMORY: Final = [
    B("a huge shift", "(1 << 8 * 2 * 10**8) > 0"),
    B("a huge text", "len('a' * (2 * 10**8))"),
    B("a huge text beyond 64 bits", "len(' ' * (1 << 60))", fits=False),
    B("a huge list", "len([0] * (3 * 10**7))"),
    B("huge bytes", "len(bytes(2 * 10**8))"),
    B("a text that doubles", "s = 'a'\nfor _ in range(28):\n    s += s\nlen(s)"),
    B("a list that grows", "l = []\nfor _ in range(200_000):\n    l.append('x' * 1000 + str(len(l)))\n"
      "len(l)"),
    B("a dict that grows", "d = {}\nfor _ in range(1_500_000):\n    d[len(d)] = [1]\nlen(d)"),
    B("a list that grows and catches", "l = []\nn = 0\nwhile n < 300:\n    n += 1\n    try:\n"
      "        l.append('x' * 10**6 + str(n))\n    except MemoryError:\n        pass\nlen(l)",
      most=80),
    B("a range made a list", "len(list(range(6_000_000)))"),
    B("a set that grows", "len({i for i in range(3_000_000)})"),
    B("a huge join", "len(''.join(['x' * 1000] * 200_000))"),
    B("a huge format width", "len(f'{1:>{2 * 10**8}}')"),
    B("a huge %-format", "len('%200000000d' % 1)"),
    B("JSON that unfolds", "import json\nlen(json.loads('[' + '0,' * 10**7 + '0]'))"),
    B("a million coroutines", "import asyncio\nasync def f(): pass\n"
      "await asyncio.gather(*[f() for _ in range(10**6)])\n1"),
    B("mapped memory", _until_it_fails("l.append(mmap.mmap(-1, 16 << 20))", "import mmap\nl = []",
      most=40), most=8, only="cpython"),
    B("raw mapped memory", f"{RAW}libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + "
      "[ctypes.c_int] * 3 + [ctypes.c_long]\nn = 0\nwhile n < 40:\n"
      "    at = libc.mmap(None, 16 << 20, 3, 0x22, -1, 0)\n"
      "    if at == ctypes.c_void_p(-1).value:\n        break\n"
      "    ctypes.memset(at, 1, 16 << 20)\n    n += 1\nn", most=8, only="cpython"),
    B("a large buffer of C", "import ctypes\nlen(ctypes.create_string_buffer(2 * 10**8))", only="cpython"),
    B("memory below the break", f"{RAW}n = 0\nlibc.sbrk.restype = ctypes.c_void_p\n"
      "while n < 40 and libc.sbrk(16 << 20) != ctypes.c_void_p(-1).value:\n    n += 1\n"
      "n", most=8, only="cpython"),
    B("a zip bomb", "import zlib\nlayer = zlib.compress(bytes(10**6))\n"
      "len(zlib.decompress(zlib.compress(zlib.decompress(layer) * 200)))", only="cpython"),
]  # fmt: skip

STORAGE: Final = [
    B(f"{what} in {place}", code.replace("@", place), "error ends memory", only="cpython")
    for place in ("/tmp", "/workspace")
    for what, code in (
        ("a large file", "import os\nf = open('@/big', 'wb')\nn = 0\n"
         "try:\n    while n < 2_000:\n        f.write(b'x' * (1 << 20))\n        f.flush()\n"
         "        n += 1\nexcept OSError:\n    pass\nassert n < 1_000, n\nn"),
        ("many files", "n = 0\ntry:\n    while n < 50_000:\n"
         "        open(f'@/f{n}', 'w').close()\n        n += 1\nexcept OSError:\n    pass\n"
         "assert n < 20_000, n\nn"),
        ("many directories", "import os\nn = 0\npath = '@'\ntry:\n    while n < 50_000:\n"
         "        path += '/d'\n        os.mkdir(path)\n        n += 1\n"
         "except OSError:\n    pass\nassert n < 20_000, n\nn"),
        ("a large file without content", "import os\nf = open('@/sparse', 'wb')\n"
         "try:\n    f.truncate(1 << 40)\nexcept OSError:\n    pass\n"
         "size = os.path.getsize('@/sparse')\nassert size < 1 << 32, size\nsize"),
        ("space reserved", "import os\nf = open('@/reserved', 'wb')\nn = 0\n"
         "try:\n    os.posix_fallocate(f.fileno(), 0, 1 << 32)\n    n = 1\n"
         "except OSError:\n    pass\nassert n == 0\nn"),
    )
]  # fmt: skip

THREADS: Final = [
    B("threads without end", "import threading, time\nn = 0\ntry:\n    while n < 5_000:\n"
      "        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n        n += 1\n"
      "except RuntimeError:\n    pass\nassert n < 1_000, n\nn", "error memory ends crash"),
    B("threads that wait for the end", "import threading, time\n"
      "for _ in range(4):\n    threading.Thread(target=time.sleep, args=(60,)).start()\n7",
      "error ends timeout"),
    B("threads that compute", f"import threading\n{LOOP}\nfor _ in range(4):\n"
      "    threading.Thread(target=f).start()\nf()", "timeout error", slow=True),
    B("a thread that goes on computing", f"import threading\n{LOOP}\n"
      "threading.Thread(target=f).start()\n7", "timeout error ends"),
    B("descriptors without end", _until_it_fails("l.append(os.dup(0))", "import os\nl = []"),
      "error ends"),
    B("pipes without end", _until_it_fails("l.append(os.pipe())", "import os\nl = []"),
      "error ends"),
    B("timers without end", "import threading\nn = 0\ntry:\n    while n < 5_000:\n"
      "        threading.Timer(60, print).start()\n        n += 1\nexcept RuntimeError:\n    pass\n"
      "assert n < 1_000, n\nn", "error memory ends timeout crash"),
]  # fmt: skip

ENDLESS: Final = [
    B("an XML bomb", "import xml.etree.ElementTree as E\n"
      "names = 'abcdef'\nlines = ['<!ENTITY a \"' + 'x' * 1000 + '\">']\n"
      "for one, two in zip(names, names[1:]):\n"
      "    lines.append(f'<!ENTITY {two} \"' + f'&{one};' * 10 + '\">')\n"
      "text = '<!DOCTYPE r [' + ''.join(lines) + ']><r>&f;&f;</r>'\nlen(E.fromstring(text).text)",
      _MEMORY + " timeout"),
    B("a huge power", "len(str(2**10**9))", _MEMORY + " timeout"),
    B("a loop", "while True:\n    pass", "timeout", slow=True),
    B("a loop that catches everything", "while True:\n  try:\n    while True: pass\n"
      "  except BaseException: pass", "timeout", slow=True),
    B("a loop in finally", "try:\n    while True: pass\nfinally:\n    while True: pass", "timeout",
      slow=True),
    B("a loop that ignores signals", "import signal\nfor s in range(1, 65):\n    try:\n"
      "        signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError):\n        pass\n"
      "while True:\n    pass", "timeout error", slow=True),
    B("a loop that blocks signals", "import signal\n"
      "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True:\n    pass",
      "timeout error", slow=True),
    B("a loop in C", "sum(range(10**12))", "timeout", slow=True),
    B("a pattern that backtracks", "import re\nre.match(r'(a*)*b', 'a' * 40)\n"
      "re.match(r'(a*)*\\1b', 'a' * 40)", "timeout error", slow=True),
    B("a loop that takes the lock", "import ctypes\n"
      "ctypes.PyDLL(None).usleep(100_000_000)", "timeout error", slow=True),
    B("sleep", "import time\ntime.sleep(1e6)", "timeout error", slow=True),
    B("a wait that never ends", "import threading\nthreading.Event().wait()", "timeout error",
      slow=True),
    B("an event loop that never ends", "import asyncio\nawait asyncio.Event().wait()",
      "timeout error", slow=True),
    B("reading its own pipe", "import os\nr, w = os.pipe()\nos.read(r, 1)", "timeout error", slow=True),
    B("a text printed without end", "while True:\n    print('x' * 1000)", "timeout", slow=True),
    B("empty lines printed without end", "while True:\n    print()", "timeout", slow=True),
]  # fmt: skip

CRASHES: Final = [
    B("a null pointer", "import ctypes\nctypes.string_at(0)", "crash error"),
    B("a wild pointer written", "import ctypes\nctypes.memset(1 << 40, 0, 8)", "crash error"),
    B("an abort", "import os\nos.abort()", "crash error"),
    B("an exit", "import os\nos._exit(0)", "crash error"),
    B("an exit with a code", "import os\nos._exit(77)", "crash error"),
    B("SystemExit", "raise SystemExit", "error ends"),
    B("sys.exit", "import sys\nsys.exit('bye')", "error crash"),
    B("KeyboardInterrupt", "raise KeyboardInterrupt", "error"),
    B("GeneratorExit", "raise GeneratorExit", "error"),
    B("CancelledError", "import asyncio\nraise asyncio.CancelledError", "error"),
    B("recursion", "def f(): return f()\nf()", "error"),
    B("recursion without a limit", "import sys\nsys.setrecursionlimit(10**9)\n"
      "def f(n): return f(n + 1)\nf(0)", "error crash memory timeout"),
    B("recursion in C", "import sys\nsys.setrecursionlimit(10**9)\na = []\n"
      "for _ in range(10**6):\n    a = [a]\nrepr(a)", "error crash memory timeout"),
    B("recursion in a sort", "def f(x): return sorted([1], key=f)\nf(1)", "error"),
    B("a deep value freed", "a = []\nfor _ in range(10**6):\n    a = [a]\na = None\n1",
      "ends memory error crash timeout"),
    B("a corrupt interpreter", "import ctypes\nctypes.memset(id(1), 255, 16)\n[1 + 1, 2 * 1]",
      "crash error memory timeout ends"),
    B("a corrupt code object", "import types\ndef f(): pass\n"
      "f.__code__ = f.__code__.replace(co_code=b'\\xff' * 20, co_stacksize=0)\nf()",
      "crash error memory timeout ends"),
    B("signals to itself", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
      "crash error"),
    B("all descriptors closed", "import os\nos.closerange(0, 1000)\nprint('x')\n1", "crash error"),
    B("the bridge replaced", "import os\nr, w = os.pipe()\nfor fd in range(64):\n"
      "    if fd not in (r, w):\n        try:\n            os.dup2(w, fd)\n"
      "        except OSError:\n            pass\nprint('x')\n1", "crash error timeout"),
    B("the bridge shut", "import socket\nfor fd in range(64):\n    try:\n"
      "        socket.socket(fileno=fd).shutdown(2)\n    except OSError:\n        pass\n"
      "print('x')\n1", "crash error ends"),
]  # fmt: skip

SOURCES: Final = [
    ("deep brackets", "(" * 5_000 + "1" + ")" * 5_000),
    ("deep lists", "[" * 5_000 + "]" * 5_000),
    ("a hundred thousand signs", "-" * 100_000 + "1"),
    ("a hundred thousand terms", "1" + "+1" * 100_000),
    ("a chain of attributes", "a" + ".a" * 100_000),
    ("a chain of calls", "a" + "()" * 100_000),
    ("twenty thousand branches", "if 0: pass\n" + "elif 0: pass\n" * 20_000),
    ("deep blocks", "".join("\t" * i + "if 1:\n" for i in range(1_000)) + "\t" * 1_000 + "pass"),
    ("deep lambdas", "lambda: " * 20_000 + "1"),
    ("many statements", "x = 0\n" * 4_000),
    ("a huge number", "9" * 250_000),
    ("a null", "x = 1\0"),
    ("half a surrogate", "x = '\ud800'"),
    ("another encoding", "# -*- coding: utf-7 -*-\n1"),
]

BOMBS: Final = [*STORAGE, *THREADS, *ENDLESS, *CRASHES]


def of(tier: str, rows: list[Bomb] = BOMBS) -> list[Any]:
    """Return the rows that mean something in `tier`."""
    return [row for row in rows if row.only in ("", tier)]
