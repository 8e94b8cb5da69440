"""Values and objects that lie, and frames that guest code was never meant to write, as a table.

Whatever a row does, its run ends within its limits; what comes of it is plain JSON within the
budgets; the host is asked for nothing but what it offers; and the next run works.
"""

from typing import Final

from attacks.bombs import DEEP, DOUBLED

VALUES: Final = [
    ("an alias bomb as result", f"{DOUBLED}a"),
    ("an alias bomb as argument", f"import host\n{DOUBLED}host.echo(a)"),
    ("an alias bomb by keyword", f"import host\n{DOUBLED}host.echo(key=a)"),
    ("an alias bomb awaited", f"import host\n{DOUBLED}await host.echo(a)"),
    ("an alias bomb of dicts", "d = {}\nfor _ in range(40):\n    d = {1: d, 2: d}\nd"),
    ("an alias bomb of tuples", "a = ('x',)\nfor _ in range(40):\n    a = (a, a)\na"),
    ("an alias bomb as key", "a = ('x',)\nfor _ in range(18):\n    a = (a, a)\n{a: 1}"),
    ("a deep value as result", f"{DEEP}a"),
    ("a deep value as argument", f"import host\n{DEEP}host.echo(a)"),
    ("a large text as argument", "import host\nhost.echo('x' * 30_000_000)"),
    ("a large text as result", "'x' * 30_000_000"),
    ("many quotes as result", "'\"' * 7_000_000"),
    ("many backslashes as result", "'\\\\' * 7_000_000"),
    ("many control characters as result", "'\\x01' * 7_000_000"),
    ("many letters of four bytes", "'\\U0001f600' * 2_000_000"),
    ("a million arguments", "import host\nhost.echo(*range(10**6))"),
    ("a million keywords", "import host\nhost.echo(**{f'k{i}': i for i in range(10**6)})"),
    ("a key of a megabyte", "import host\nhost.echo(**{'k' * 9_000_000: 1})"),
    ("a huge integer", "1 << 100_000"),
    ("a huge integer as argument", "import host\nhost.echo(1 << 100_000)"),
    ("no number as argument", "import host\nhost.echo(float('nan'))"),
    ("no number as key", "{float('nan'): 1, float('inf'): 2}"),
    ("half a surrogate", "'\\ud800' + chr(0xdfff)"),
    ("half a surrogate as argument", "import host\nhost.echo('\\ud800')"),
    ("half a surrogate as keyword", "import host\nhost.echo(**{'\\ud800': 1})"),
    ("half a surrogate printed", "print('\\ud800')"),
    ("escaped surrogates in a text", "import host, json\nhost.echo(json.dumps('\\U0001f600'))"),
    ("nulls", "import host\nprint('a\\0b')\nhost.echo('\\0')"),
    ("a value that contains itself", "a = []\na.append(a)\na"),
    ("an argument that holds itself", "import host\na = {}\na['a'] = a\nhost.echo(a)"),
    ("a module", "import sys\nsys"),
    ("the builtins", "import builtins\nvars(builtins)"),
    ("a generator", "(x for x in range(3))"),
    ("a function as argument", "import host\nhost.echo(print)"),
    ("bytes as argument", "import host\nhost.echo(b'x')"),
]  # fmt: skip

OBJECTS: Final = [
    ("a repr that loops", "class A:\n    def __repr__(self):\n        while True: pass\nA()"),
    ("a repr that exits", "class A:\n    def __repr__(self): raise SystemExit\nA()"),
    ("a repr that is no text", "class A:\n    def __repr__(self): return 5\nA()"),
    ("a repr that recurs", "class A:\n    def __repr__(self): return repr(self)\nA()"),
    ("a str of a gigabyte", "class A:\n    def __str__(self): return 'x' * (1 << 30)\nprint(A())\nA()"),
    ("a str of thirty megabytes", "class A:\n    def __str__(self): return 'x' * (30 << 20)\nA()"),
    ("an exception that loops", "class E(Exception):\n    def __str__(self):\n"
     "        while True: pass\nraise E"),
    ("an exception that exits", "import os\nclass E(Exception):\n"
     "    def __str__(self): os._exit(0)\nraise E"),
    ("an exception of thirty megabytes", "raise ValueError('x' * 30_000_000)"),
    ("an exception with a long name", "raise type('E' * 10**6, (Exception,), {})()"),
    ("an exception with a long chain", "e = None\nfor _ in range(10_000):\n    n = ValueError('x')\n"
     "    n.__cause__ = e\n    e = n\nraise e"),
    ("an exception that causes itself", "e = ValueError()\ne.__cause__ = e\nraise e"),
    ("an exception with evil notes", "e = ValueError()\ne.__notes__ = 5\nraise e"),
    ("an exception of no module", "class E(Exception): pass\nE.__module__ = 5\nE.__qualname__ = 'x'\n"
     "raise E"),
    ("an error of syntax with lies", "raise SyntaxError('x', ('f', -5, 'y', 'text', 9, 9))"),
    ("an error with a line that lies", "e = SyntaxError('x')\ne.lineno = 'ten'\ne.text = 7\nraise e"),
    ("a deep traceback", "def f(n):\n    if n: f(n - 1)\n    else: 1 / 0\nf(300)"),
    ("a list that lies about its length", "class L(list):\n    def __len__(self): return 10**9\n"
     "    def __iter__(self):\n        while True: yield 1\nL([1])"),
    ("a list that never ends as argument", "import host\nclass L(list):\n    def __iter__(self):\n"
     "        while True: yield 1\nhost.echo(L([1]))"),
    ("a dict that never ends", "class D(dict):\n    def items(self):\n        n = 0\n"
     "        while True:\n            n += 1\n            yield n, n\nD(a=1)"),
    ("a mapping that never ends", "from collections.abc import Mapping\nclass M(Mapping):\n"
     "    def __len__(self): return 1\n    def __getitem__(self, k): return k\n"
     "    def __iter__(self):\n        n = 0\n        while True:\n            n += 1\n"
     "            yield n\nM()"),
    ("an object that opens for ever", "class A:\n    @property\n    def __dict__(self):\n"
     "        return {'a': A()}\nA()"),
    ("an object of any attribute", "class A:\n    def __getattr__(self, n): return A()\nA()"),
    ("an object with attributes that loop", "class A:\n    def __getattribute__(self, n):\n"
     "        while True: pass\nA()"),
    ("an integer that lies", "class I(int):\n    def __int__(self): raise SystemExit\n"
     "    def bit_length(self): return 1\nI(5)"),
    ("a huge integer that says it is small", "import host\nclass I(int):\n"
     "    def bit_length(self): return 1\nhost.echo(I(1 << 200_000))"),
    ("a text that lies", "class S(str):\n    def encode(self, *a): return b''\n"
     "    def isascii(self): return True\n    def __len__(self): return 0\nS('x' * 20_000_000)"),
    ("a class that lies", "class A:\n    @property\n    def __class__(self): return dict\nA()"),
    ("named tuples that lie", "import collections\nT = collections.namedtuple('T', 'a b')\n"
     "T._fields = ('a',) * 10\nT(1, 2)"),
    ("named tuples with evil names", "class T(tuple):\n    _fields = (object(), 5)\nT((1, 2))"),
    ("an array that lies", "import numpy\nclass A(numpy.ndarray):\n"
     "    def tolist(self): return self\nnumpy.zeros(3).view(A)"),
    ("a module that says it is numpy", "class A:\n    ndim = dtype = 1\n    size = 0\n"
     "    def tolist(self): return [self] * 10**6\nA.__module__ = 'numpy'\nA()"),
    ("objects with one hash", "class A:\n    def __hash__(self): return 1\n"
     "    def __eq__(self, o): return False\n{A() for _ in range(5_000)}"),
    ("a finalizer that loops", "class A:\n    def __del__(self):\n        while True: pass\n"
     "a = A()\na = None\n1"),
    ("a finalizer at the end", "class A:\n    def __del__(self):\n        while True: pass\n"
     "a = A()\n1"),
    ("a finalizer that raises itself from the dead", "kept = []\nclass A:\n"
     "    def __del__(self): kept.append(self)\nfor _ in range(100): A()\nlen(kept)"),
    ("something to do at exit", "import atexit\ndef f():\n    while True: pass\n"
     "atexit.register(f)\n1"),
    ("a trace that loops", "import sys\ndef f(*_):\n    while True: pass\nsys.settrace(f)\n"
     "def g(): pass\ng()"),
    ("a trace of everything", "import sys\nsys.setprofile(lambda *_: 1 / 0)\nprint('x')\n1"),
    ("a hook for audits", "import sys\ndef f(*_):\n    raise SystemExit\nsys.addaudithook(f)\n"
     "open('/dev/null')"),
    ("a hook for errors", "import sys\ndef f(*_):\n    while True: pass\nsys.excepthook = f\n1 / 0"),
    ("an output that loops", "import sys\nclass W:\n    def write(self, t):\n        while True: pass\n"
     "    def flush(self):\n        while True: pass\nsys.stdout = W()\n1"),
    ("an output that is closed", "import sys\nsys.stdout.close()\nprint('x')\n1"),
    ("no output", "import sys\ndel sys.stdout, sys.stderr\n1"),
    ("builtins gone", "import builtins\nfor name in list(vars(builtins)):\n"
     "    if name not in ('delattr', 'vars', 'list', '__build_class__'):\n"
     "        try:\n            delattr(builtins, name)\n        except BaseException:\n"
     "            pass\n1"),
    ("builtins replaced", "import builtins\nbuiltins.isinstance = lambda *_: True\n"
     "builtins.len = lambda _: 10**12\nbuiltins.type = lambda _: list\n{'a': object()}"),
    ("modules gone", "import sys\nsys.modules.clear()\n1"),
    ("modules replaced", "import json, struct, os\njson.dumps = lambda *a, **k: '[' * 10**6\n"
     "struct.pack = lambda *a: b'x'\nos.write = lambda fd, data: len(data)\nprint('x')\n7"),
    ("random numbers replaced", "import random, os\nos.urandom = lambda n: b'0' * n\n1"),
    ("a signal handler that loops", "import signal\ndef f(*_):\n    while True: pass\n"
     "for s in (2, 10, 14, 15):\n    signal.signal(s, f)\nsignal.setitimer(0, 0.01)\n"
     "while True: pass"),
    ("an alarm", "import signal\nsignal.alarm(1)\nwhile True: pass"),
]  # fmt: skip

CALLS: Final = [
    ("calls without end", "import host\nwhile True:\n  try:\n    host.echo(1)\n"
     "  except BaseException:\n    pass"),
    ("gathered calls without end", "import host, asyncio\n"
     "await asyncio.gather(*[host.echo(i) for i in range(10**4)])"),
    ("calls from threads", "import host, threading\n"
     "def f():\n    while True: host.echo(1)\nfor _ in range(4):\n"
     "    threading.Thread(target=f).start()\nf()"),
    ("sleep without end", "import time\nwhile True:\n    time.sleep(10)"),
    ("a very long sleep", "import time\ntime.sleep(1e9)"),
    ("many short sleeps", "import time\nwhile True:\n    time.sleep(1e-9)"),
    ("a sleep of no number", "import time\ntime.sleep(float('nan'))"),
    ("a sleep back in time", "import time\ntime.sleep(-5)"),
    ("a call in another call's name", "import host\nhost.echo.__name__ = 'fail'\n"
     "host.echo.__qualname__ = 'host.fail'\nhost.echo(1)"),
    ("the host's functions taken apart", "import host\nf = host.echo\n"
     "cells = [c.cell_contents for c in f.__closure__]\nfor each in cells:\n"
     "    for name in dir(each):\n        getattr(each, name)\n1"),
    ("modules without end", "for n in range(10**6):\n    try:\n        __import__(f'm{n}')\n"
     "    except ImportError:\n        pass"),
    ("files without end", "for n in range(10**6):\n    try:\n        open(f'/servers/{n}')\n"
     "    except OSError:\n        pass"),
]  # fmt: skip

_WRITE: Final = "import os, struct\ndef send(kind, data, size=None):\n" \
    "    os.write(3, struct.pack('<IB', len(data) if size is None else size, kind) + data)\n"  # fmt: skip
_CALL: Final = "import json\ndef call(name, args, kwargs, number=7, awaited=0, line=1):\n" \
    "    send(2, struct.pack('<IBI', number, awaited, line) + json.dumps([name, args, kwargs])" \
    ".encode())\n"  # fmt: skip
_WAIT: Final = "\nimport time\nwhile True:\n    time.perf_counter()\n"

FRAMES: Final = [
    (name, f"{_WRITE}{_CALL}{code}")
    for name, code in (
        ("garbage", "os.write(3, os.urandom(4096))" + _WAIT),
        ("zeros", "os.write(3, bytes(65536))" + _WAIT),
        ("a huge length", "os.write(3, b'\\xff' * 5 + b'x' * 100)" + _WAIT),
        ("a length just too large", "send(5, b'', 65_537)" + _WAIT),
        ("half a frame", "send(8, b'x', 100)" + _WAIT),
        ("half a frame, then its end", "send(8, b'x', 1000)\nos._exit(0)"),
        ("half a header, then its end", "os.write(3, b'\\0\\0')\nos._exit(0)"),
        *((f"kind {kind} with nothing in it", f"send({kind}, b''){_WAIT}")
          for kind in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 64, 65, 66, 67, 128, 255)),
        *((f"kind {kind} with a list of nothing", f"send({kind}, b'[]'){_WAIT}")
          for kind in (1, 2, 3, 4, 6, 7, 8)),
        *((f"kind {kind} with wrong types", f"send({kind}, b'[{{}}, [], null]'){_WAIT}")
          for kind in (3, 4, 6, 7, 8)),
        *((f"kind {kind} with deep lists", f"send({kind}, b'[' * 4_000 + b']' * 4_000){_WAIT}")
          for kind in (3, 4, 6, 7, 8)),
        ("an end that is not true", "send(8, b'[\"forged\",null,0]')" + _WAIT),
        ("two ends", "send(8, b'[1,null,0]')\nsend(8, b'[2,null,0]')" + _WAIT),
        ("an end with a failure of its own", "send(8, b'[null,[\"timeout\",\"x\",\"\",1],0]')" + _WAIT),
        ("an end with an unknown failure", "send(8, b'[null,[\"evil\",\"x\",\"\",1],0]')" + _WAIT),
        ("an end with a long failure", "send(8, json.dumps([None, ['error', 'x' * 10**6, 'y' * 10**6, "
         "-5], -7]).encode())" + _WAIT),
        ("an end with a million parts", "send(8, b'[' + b'[],' * 10**6 + b'1]')" + _WAIT),
        ("an end with hidden parts", "send(8, b'[\"' + b'\\\\\"' * 2_000_000 + b'\",' + b'1,' * 300_000 "
         "+ b'1]')" + _WAIT),
        ("an end with an open text", "send(8, b'[' + b'1,' * 300_000 + b'\"' + b'\\\\\"' * 2_000_000)"
         + _WAIT),
        ("an end with a large number", "send(8, b'[' + b'9' * 10**6 + b',null,0]')" + _WAIT),
        ("an end with no number", "send(8, b'[NaN,null,0]')" + _WAIT),
        ("an end with an infinite number", "send(8, b'[1e999,null,0]')" + _WAIT),
        ("an end with half a surrogate", "send(8, b'[\"\\\\ud800\",null,0]')" + _WAIT),
        ("an end that is no UTF-8", "send(8, b'[\"\\xff\",null,0]')" + _WAIT),
        ("a call of nothing", "call('', [], {})" + _WAIT),
        ("a call of what is not offered", "call('os.system', ['id'], {})" + _WAIT),
        ("a call of the host's inside", "call('host.__class__', [], {})" + _WAIT),
        ("a call of sleep as a tool", "call('sleep', ['x'], {})" + _WAIT),
        ("a call of a long name", "call('host.' + 'x' * 10**6, [], {})" + _WAIT),
        ("a call of a name that is no text", "call({'a': 1}, [], {})" + _WAIT),
        ("a call with arguments that are no list", "call('host.echo', 5, [])" + _WAIT),
        ("a call with keywords that are no names", "call('host.echo', [], {'a b': 1, '': 2})" + _WAIT),
        ("a call with a million parts", "call('host.echo', [0] * 10**6, {})" + _WAIT),
        ("a call with deep arguments", "x = []\nfor _ in range(500): x = [x]\n"
         "call('host.echo', [x], {})" + _WAIT),
        ("calls of one number", "for _ in range(50): call('host.echo', [1], {})" + _WAIT),
        ("calls of one number, awaited", "for _ in range(50): call('host.echo', [1], {}, awaited=1)"
         + _WAIT),
        ("calls without end that nobody waits for", "n = 0\nwhile True:\n    n += 1\n"
         "    call('host.echo', ['x' * 1000], {}, number=n, awaited=1)"),
        ("a call awaited in a strange way", "call('host.echo', [1], {}, awaited=77)" + _WAIT),
        ("a call on a strange line", "call('host.echo', [[[]] * 10**6], {}, line=2**32 - 1)" + _WAIT),
        ("a sleep of any length", "send(4, b'[1,1e300,false]')" + _WAIT),
        ("a sleep back in time", "send(4, b'[1,-1e300,false]')" + _WAIT),
        ("a sleep of a text", "send(4, b'[1,\"x\",false]')" + _WAIT),
        ("a sleep of a yes", "send(4, b'[1,true,true]')" + _WAIT),
        ("sleeps without end", "n = 0\nwhile True:\n    n += 1\n    send(4, b'[%d,0,true]' % n)"),
        ("modules without end", "n = 0\nwhile True:\n    n += 1\n    send(3, b'[%d,\"host\"]' % n)"),
        ("a module of the host's", "send(3, b'[1,\"os\"]')" + _WAIT),
        ("a file of the host's", "send(6, b'[1,\"read\",\"/etc/passwd\"]')" + _WAIT),
        ("a file by a way around", "send(6, b'[1,\"read\",\"/servers/../../etc/passwd\"]')" + _WAIT),
        ("files of the host without end", "n = 0\nwhile True:\n    n += 1\n    send(6, b'[%d,\"read\",\"/a\"]' % n)"),
        ("something else of a file", "send(6, b'[1,\"write\",\"/servers/x\"]')" + _WAIT),
        ("output without end", "while True:\n    send(5, b'x' * 65_536)"),
        ("output of nothing without end", "while True:\n    send(5, b'')"),
        ("output that is no UTF-8", "for _ in range(100): send(5, b'\\xff\\xc3')\n1"),
        ("readiness again and again", "for _ in range(100): send(1, b'')" + _WAIT),
        ("a refusal of its own", "send(7, b'[\"words\", 3]')" + _WAIT),
        ("a long refusal", "send(7, b'[\"' + b'x' * 8_000 + b'\", -3]')" + _WAIT),
        ("broken walls", "send(9, b'the walls are down')" + _WAIT),
        ("descriptors sent to the host", "import array, socket\ns = socket.socket(fileno=os.dup(3))\n"
         "for _ in range(20):\n    s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, "
         "array.array('i', [0, 1, 2]))])" + _WAIT),
        ("what the host sends, read away", "import host\nos.read(3, 0)\ndef f():\n    while True:\n"
         "        os.read(3, 100)\nimport threading\n"
         "threading.Thread(target=f, daemon=True).start()\nhost.echo(1)"),
        ("answers that nobody reads", "n = 0\nwhile n < 100_000:\n    n += 1\n"
         "    call('host.echo', ['x' * 100_000], {}, number=n, awaited=1)"),
    )
]  # fmt: skip
