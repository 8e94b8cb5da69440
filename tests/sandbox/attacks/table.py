"""Attacks on what is outside, as a table. Each security bug adds its row first.

The code of a row prints REACHED, or shows the secret, or leaves a mark on what `Outside` watches,
if it works. Rows that are `bare` are shown to work where there are no walls; the others would hurt the
machine there, or need rights that tests do not have. `@NAME@` stands for a place of `Outside`.

Where an attack could harm more than its target it is made harmless: signals to everybody are of a
kind that nobody minds, forks end at once, system calls have arguments that the kernel refuses.
"""

from dataclasses import dataclass
from typing import Final

from attacks.outside import REACHED

RAW: Final = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.mmap.restype = ctypes.c_void_p
def call(number, *args):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *args)
    return result if result != -1 else -ctypes.get_errno()
"""
"""Raw system calls: what Python itself forbids is no wall."""


@dataclass(frozen=True, slots=True)
class Attack:
    """One way to reach what is outside."""

    name: str
    code: str
    bare: bool = True
    """Whether it may be run, and works, without any walls."""
    needs_root: bool = False
    """Whether it works without walls for root only."""
    open_at: frozenset[str] = frozenset()
    """Confinement levels that do not promise to stop it."""


def _attacks(theme: str, *rows: Attack) -> list[Attack]:
    return [
        Attack(f"{theme}: {row.name}", row.code, row.bare, row.needs_root, row.open_at)
        for row in rows
    ]


def _tried(*lines: str) -> str:
    """Return code that tries each line, goes on after failures, and prints what they give."""
    body = "".join(
        f"try:\n    print({line})\nexcept BaseException as e:\n    print(type(e).__name__)\n"
        for line in lines
    )
    return f"import os, pathlib\n{body}"


A = Attack

FILES = _attacks(
    "files",
    A("reads a file", "print(open('@SECRET_FILE@').read())"),
    A("reads a file by pathlib", "import pathlib\npathlib.Path('@SECRET_FILE@').read_text()"),
    A("reads a file by descriptor", "import os\nos.read(os.open('@SECRET_FILE@', 0), 99).decode()"),
    A("reads a file by a way around", "open('../' * 30 + '@SECRET_FILE@').read()"),
    A("reads a file by a raw call", f"{RAW}fd = call(2, b'@SECRET_FILE@', 0)\n"
      "print(os.read(fd, 99))"),
    A("reads a file by openat2", f"{RAW}how = (ctypes.c_uint64 * 3)(0, 0, 0)\n"
      "fd = call(437, -100, b'@SECRET_FILE@', how, 24)\nprint(os.read(fd, 99))"),
    A("reads a file through its own root", "open('/proc/self/root@SECRET_FILE@').read()"),
    A("reads a file through the first process", "open('/proc/1/root@SECRET_FILE@').read()",
      bare=False),
    A("reads a file through the host's root", "open('/proc/@HOST@/root@SECRET_FILE@').read()"),
    A("reads a file through the victim's root", "open('/proc/@VICTIM@/root@SECRET_FILE@').read()",
      needs_root=True),
    A("reads a file in shared memory", "open('@DEV_SHM@').read()"),
    A("reads a file by a link", "import os\nos.symlink('@SECRET_FILE@', '/tmp/ln-@HOST@')\n"
      "try:\n    print(open('/tmp/ln-@HOST@').read())\nfinally:\n    os.unlink('/tmp/ln-@HOST@')"),
    A("reads a file by a hard link", "import os\nos.link('@SECRET_FILE@', '@DROP@/hard')"),
    A("reads a file by mmap", "import mmap\nf = open('@SECRET_FILE@', 'rb')\n"
      "print(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)[:99])"),
    A("reads a file by sendfile", f"{RAW}r, w = os.pipe()\nfd = os.open('@SECRET_FILE@', 0)\n"
      "os.sendfile(w, fd, 0, 99)\nprint(os.read(r, 99))"),
    A("reads a file by handle", f"{RAW}import struct\n"
      "handle = ctypes.create_string_buffer(struct.pack('<Ii', 128, 0) + bytes(128))\n"
      "mount = ctypes.c_int()\n"
      "assert call(303, -100, b'@SECRET_FILE@', handle, ctypes.byref(mount), 0) == 0\n"
      "root = os.open('/', os.O_RDONLY)\nfd = call(304, root, handle, 0)\n"
      "assert fd >= 0\nprint(os.read(fd, 99))", needs_root=True),
    A("reads a file as a database", "import sqlite3\n"
      "sqlite3.connect('file:@SECRET_FILE@?mode=ro', uri=True).execute('select 1 from x')",
      bare=False),
    A("imports a module from outside", "import sys\nsys.path.insert(0, '@DIR@')\n"
      "import canary_module"),
    A("runs code from outside", "import runpy\nrunpy.run_path('@DIR@/canary_module.py')"),
    A("lists a directory", "import os\nprint('REACHED' if 'drop' in os.listdir('@DIR@') else '')"),
    A("looks around", "import os\nfor name in os.listdir('/tmp'):\n"
      "    if name == os.path.basename('@DIR@'):\n        print('REACHED', name)"),
    A("looks whether a file is there", "import os\nif os.path.exists('@SECRET_FILE@'):\n"
      "    print('REACHED', os.stat('@SECRET_FILE@').st_size)", open_at=frozenset({"landlock"})),
    A("watches a directory", f"{RAW}fd = call(294, 0)\n"
      "if fd >= 0 and call(254, fd, b'@DIR@', 0xfff) >= 0:\n    print('REACHED')",
      open_at=frozenset({"landlock"})),
    A("changes into a directory", "import os\nos.chdir('@DIR@')\nprint('REACHED', os.getcwd())",
      open_at=frozenset({"landlock"})),
    A("writes a file", "open('@SECRET_FILE@', 'w').write('changed')"),
    A("appends to a file", "open('@SECRET_FILE@', 'a').write('more')"),
    A("makes a file", "open('@DROP@/new', 'w').write('x')"),
    A("makes a file without a name", "import os\n"
      "fd = os.open('@DROP@', os.O_TMPFILE | os.O_RDWR)\nprint('REACHED')"),
    A("makes a directory", "import os\nos.mkdir('@DROP@/folder')"),
    A("makes a database", "import sqlite3\nsqlite3.connect('@DROP@/x.db').execute('create table t(a)')"),
    A("makes a link outside", "import os\nos.symlink('/etc', '@DROP@/link')"),
    A("makes a pipe outside", "import os\nos.mkfifo('@DROP@/pipe')"),
    A("makes a device", "import os, stat\nos.mknod('@DROP@/disk', 0o666 | stat.S_IFBLK, "
      "os.makedev(254, 0))", needs_root=True),
    A("deletes a file", "import os\nos.remove('@SECRET_FILE@')"),
    A("renames a file", "import os\nos.rename('@SECRET_FILE@', '@DROP@/renamed')"),
    A("exchanges two files", f"{RAW}open('/tmp/ex-@HOST@', 'w').close()\n"
      "call(316, -100, b'/tmp/ex-@HOST@', -100, b'@SECRET_FILE@', 2)\nos.unlink('/tmp/ex-@HOST@')"),
    A("cuts a file", "import os\nos.truncate('@SECRET_FILE@', 0)"),
    A("changes the mode of a file", "import os\nos.chmod('@SECRET_FILE@', 0o600)"),
    A("changes the owner of a file", "import os\nos.chown('@SECRET_FILE@', 1, 1)", needs_root=True),
    A("changes the times of a file", "import os\nos.utime('@SECRET_FILE@', (1, 1))"),
    A("changes attributes of a file", "import os\nos.setxattr('@SECRET_FILE@', 'user.x', b'x')"),
    A("locks a file", "import fcntl\nf = open('@SECRET_FILE@')\nfcntl.flock(f, fcntl.LOCK_EX)\n"
      "print('REACHED')"),
    A("reads passwords", _tried("open('/etc/shadow').read() and 'REACHED'",
      "open('/etc/passwd').read() and 'REACHED'")),
    A("reads home directories", _tried("os.listdir('/root') and 'REACHED'",
      "os.listdir('/home') is not None and 'REACHED'", "'REACHED' * bool(os.listdir('/etc'))")),
    A("writes next to the standard library", "import os, pathlib\n"
      "place = pathlib.Path(os.__file__).with_name('toolfold_canary.py')\nplace.touch()\n"
      "place.unlink()\nprint('REACHED')", bare=False),
    A("writes bytecode of the standard library", "import os, pathlib\n"
      "folder = pathlib.Path(os.__file__).parent / '__pycache__'\n"
      "(folder / 'canary.pyc').touch()\n(folder / 'canary.pyc').unlink()\nprint('REACHED')",
      bare=False),
    A("opens devices", _tried(*(f"open('/dev/{each}', 'rb') and 'REACHED'" for each in
      ("mem", "kmsg", "vda", "sda", "nvme0n1", "fuse", "loop-control", "kvm", "vsock", "ptmx"))),
      needs_root=True),
    A("opens settings of the kernel", _tried(
      "open('/proc/sys/kernel/core_pattern', 'r+') and 'REACHED'",
      "open('/proc/sysrq-trigger', 'r+') and 'REACHED'",
      "open('/sys/kernel/uevent_helper', 'r+') and 'REACHED'",
      "'REACHED' * bool(os.listdir('/sys/fs/cgroup'))"), needs_root=True),
)  # fmt: skip

WORKSPACE = _attacks(
    "workspace",
    *(A(f"sets the set-uid bit in {place} by {way}", f"{RAW}os.umask(0)\npath = '{place}/suid'\n"
        f"{code}\nif os.stat(path).st_mode & 0o6000:\n    print('REACHED')\n", bare=False)
      for place in ("/tmp", "/workspace")
      for way, code in (
          ("chmod", "open(path, 'w').close()\nos.chmod(path, 0o6777)"),
          ("fchmod", "f = open(path, 'w')\nos.fchmod(f.fileno(), 0o4777)"),
          ("open", "os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o4777))"),
          ("mkdir", "os.mkdir(path, 0o2777)\nos.chmod(path, 0o2777)"),
          ("mknod", "os.mknod(path, 0o104777)"),
          ("fchmodat2", "open(path, 'w').close()\ncall(452, -100, path.encode(), 0o4777, 0)"),
          ("openat2", "call(437, -100, path.encode(), (ctypes.c_uint64 * 3)(0o101, 0o4777, 0), 24)"),
      )),
    A("makes a link to the outside", "import os\nos.symlink('@SECRET_FILE@', '/workspace/link')\n"
      "print('REACHED')", bare=False),
    A("makes a link upwards", "import os\nos.symlink('../../../..', '/workspace/up')\n"
      "print('REACHED')", bare=False),
    A("makes a hard link", "import os\nopen('/workspace/a', 'w').close()\n"
      "os.link('/workspace/a', '/workspace/b')\nprint('REACHED')", bare=False),
    A("makes a hard link to the interpreter", "import os\n"
      "os.link(os.__file__, '/workspace/os.py')\nprint('REACHED')", bare=False),
    A("makes a pipe", "import os\nos.mkfifo('/workspace/pipe')\nprint('REACHED')", bare=False),
    A("makes a socket", "import os, stat\nos.mknod('/workspace/s', 0o666 | stat.S_IFSOCK)\n"
      "print('REACHED')", bare=False),
    A("makes a device", "import os, stat\nos.mknod('/workspace/null', 0o666 | stat.S_IFCHR, "
      "os.makedev(1, 3))\nprint('REACHED')", bare=False),
    A("gives a file capabilities", "import os\nopen('/workspace/cap', 'w').close()\n"
      "os.setxattr('/workspace/cap', 'security.capability', bytes.fromhex("
      "'0100000200200000000000000000000000000000'))\nprint('REACHED')", bare=False),
    A("is on the import path", "import sys\n"
      "if any(p in ('', '.') or p.startswith(('/workspace', '/tmp')) for p in sys.path):\n"
      "    print('REACHED', sys.path)", bare=False),
    A("shadows a module of the standard library", "import os, sys\n"
      "name = next(n for n in ('wave', 'sndhdr', 'cgi', 'colorsys', 'chunk') if n not in sys.modules)\n"
      "for place in ('/workspace', '/tmp', os.getcwd()):\n    try:\n"
      "        open(f'{place}/{name}.py', 'w').write('print(\"REACHED\")')\n"
      "    except OSError:\n        pass\n__import__(name)", bare=False),
)  # fmt: skip

_CONNECT = "import socket\ns = socket.socket({0})\ns.connect({1})\ns.send(b'hello')\n"

NETWORK = _attacks(
    "network",
    A("connects by TCP", _CONNECT.format("", "('127.0.0.1', @TCP@)")),
    A("connects by TCP with fast open", "import socket\ns = socket.socket()\n"
      "s.sendto(b'x', socket.MSG_FASTOPEN, ('127.0.0.1', @TCP@))", bare=False),
    A("connects by name", "import socket\nsocket.create_connection(('localhost', @TCP@))"),
    A("connects by raw calls", f"{RAW}import struct\nfd = call(41, 2, 1, 0)\n"
      "call(42, fd, struct.pack('!HH4s8x', 0x0200, @TCP@, bytes([127, 0, 0, 1])), 16)"),
    A("connects by asyncio", "import asyncio\nasync def f():\n"
      "    await asyncio.open_connection('127.0.0.1', @TCP@)\nasyncio.run(f())"),
    A("fetches a page", "import urllib.request\n"
      "urllib.request.urlopen('http://127.0.0.1:@TCP@/', timeout=0.1)"),
    A("sends by UDP", "import socket\nsocket.socket(type=socket.SOCK_DGRAM)"
      ".sendto(b'x', ('127.0.0.1', @UDP@))"),
    A("connects to a unix socket", _CONNECT.format("socket.AF_UNIX", "'@UNIX@'")),
    A("connects to an abstract socket", _CONNECT.format("socket.AF_UNIX", "'\\0@ABSTRACT@'")),
    A("sends to a unix socket", "import socket\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
      "s.sendto(b'x', '@DIR@/datagrams.sock')"),
    A("listens by TCP", "import socket\ns = socket.create_server(('127.0.0.1', 0))\nprint('REACHED')"),
    A("listens on an abstract socket", "import socket\ns = socket.socket(socket.AF_UNIX)\n"
      "s.bind('\\0here-@HOST@')\ns.listen()\nprint('REACHED')"),
    A("resolves a name", "import socket\nif socket.gethostbyname('localhost'):\n    print('REACHED')",
      bare=False),
    A("opens a raw socket", "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)\n"
      "print('REACHED')", needs_root=True),
    A("opens a packet socket", "import socket\ns = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)\n"
      "print('REACHED')", needs_root=True),
    A("opens netlink", "import socket\ns = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)\n"
      "print('REACHED')"),
    A("opens sockets of every family", f"{RAW}for family in range(1, 50):\n"
      "    for kind in (1, 2, 3, 5):\n        if call(41, family, kind, 0) >= 0:\n"
      "            print('REACHED', family, kind)"),
    A("opens pairs of every family", f"{RAW}pair = (ctypes.c_int * 2)()\n"
      "for family in range(1, 50):\n    if call(53, family, 1, 0, pair) >= 0:\n"
      "        print('REACHED', family)", bare=False),
    A("sees network interfaces", "import os, socket\n"
      "if [name for _, name in socket.if_nameindex() if name != 'lo']:\n    print('REACHED')",
      bare=False),
)  # fmt: skip

_SHELL = "echo x > @DROP@/shell"

PROCESSES = _attacks(
    "processes",
    A("runs a command", f"import os\nos.system('{_SHELL}')"),
    A("runs a command by popen", f"import os\nos.popen('{_SHELL}').read()"),
    A("starts a process", f"import subprocess\nsubprocess.run(['/bin/sh', '-c', '{_SHELL}'])"),
    A("spawns", f"import os\npid = os.posix_spawn('/bin/sh', ['sh', '-c', '{_SHELL}'], {{}})\n"
      "os.waitpid(pid, 0)"),
    A("becomes a shell", f"import os\nos.execv('/bin/sh', ['sh', '-c', '{_SHELL}'])"),
    A("becomes another interpreter", "import os, sys\nos.execv(os.path.realpath(sys.executable or "
      "'/usr/bin/python3'), ['python', '-c', 'open(\"@DROP@/python\", \"w\")'])"),
    A("becomes a shell by a raw call", f"{RAW}argv = (ctypes.c_char_p * 4)(b'sh', b'-c', "
      f"b'{_SHELL}', None)\ncall(59, b'/bin/sh', argv, None)"),
    A("becomes a shell by the dynamic loader", f"{RAW}import glob\nfor loader in "
      "glob.glob('/lib*/ld-linux*') + ['/lib64/ld-linux-x86-64.so.2']:\n"
      "    argv = (ctypes.c_char_p * 5)(b'ld', b'/bin/sh', b'-c', "
      f"b'{_SHELL}', None)\n    call(59, loader.encode(), argv, None)"),
    A("becomes a program in memory", f"{RAW}fd = call(319, b'x', 0)\n"
      f"os.write(fd, b'#!/bin/sh\\n{_SHELL}\\n')\nargv = (ctypes.c_char_p * 2)(b'x', None)\n"
      "call(322, fd, b'', argv, None, 0x1000)\n"),
    A("forks", "import os\nif os.fork() == 0:\n    open('@DROP@/child', 'w')\n    os._exit(0)\n"
      "os.wait()"),
    A("forks with a terminal", "import os, pty\npid, fd = pty.fork()\nif pid == 0:\n"
      "    open('@DROP@/child', 'w')\n    os._exit(0)\nos.waitpid(pid, 0)"),
    A("forks by raw calls", f"{RAW}pid = call(57)\nif pid == 0:\n    os._exit(0)\n"
      "if pid > 0:\n    print('REACHED')"),
    A("clones by raw calls", f"{RAW}for flags in (17, 0x10000011, 0x20011, 0x40000011, 0):\n"
      "    pid = call(56, flags, 0, 0, 0, 0)\n    if pid == 0:\n        os._exit(0)\n"
      "    if pid > 0:\n        print('REACHED', flags)"),
    A("clones by clone3", f"{RAW}args = (ctypes.c_uint64 * 11)()\nargs[4] = 17\n"
      "pid = call(435, args, 88)\nif pid == 0:\n    os._exit(0)\nif pid > 0:\n    print('REACHED')"),
    A("starts a pool of processes", "import multiprocessing\n"
      "with multiprocessing.get_context('fork').Pool(1) as pool:\n"
      "    pool.apply(open, ('@DROP@/child', 'w'))", bare=False),
    A("forks many times", "import os\nfor _ in range(50):\n    if os.fork() == 0:\n"
      "        os._exit(0)\n    print('REACHED')"),
    A("kills a process", "import os\nos.kill(@VICTIM@, 9)"),
    A("kills a process by a raw call", f"{RAW}call(62, @VICTIM@, 9)"),
    A("kills by thread", f"{RAW}call(234, @VICTIM@, @VICTIM@, 9)\ncall(200, @VICTIM@, 9)"),
    A("kills by descriptor", f"{RAW}fd = call(434, @VICTIM@, 0)\ncall(424, fd, 9, None, 0)"),
    A("kills with a queue", f"{RAW}info = ctypes.create_string_buffer(128)\n"
      "ctypes.c_int.from_buffer(info, 0).value = 23\nctypes.c_int.from_buffer(info, 8).value = -1\n"
      "call(129, @VICTIM@, 23, info)"),
    A("signals the host", "import os, signal\nos.kill(@HOST@, signal.SIGURG)"),
    A("signals its parent", "import os, signal\nos.kill(os.getppid(), signal.SIGURG)\n"
      "print('REACHED')"),
    A("signals everybody", "import os, signal\nos.kill(-1, signal.SIGURG)", bare=False),
    A("asks for a signal by a file", f"{RAW}import fcntl, signal\nr, w = os.pipe()\n"
      "fcntl.fcntl(r, 8, @VICTIM@)\nfcntl.fcntl(r, 10, signal.SIGURG)\n"
      "fcntl.fcntl(r, fcntl.F_SETFL, fcntl.fcntl(r, fcntl.F_GETFL) | os.O_ASYNC)\n"
      "os.write(w, b'x')"),
    A("traces a process", f"{RAW}for pid in (@VICTIM@, @OWN_VICTIM@, @HOST@):\n"
      "    if libc.ptrace(0x4206, pid, None, None) == 0:\n        print('REACHED')"),
    A("reads memory of the host", f"{RAW}here = ctypes.create_string_buffer(16)\n"
      "vec = (ctypes.c_uint64 * 2)(ctypes.addressof(here), 16)\n"
      "for pid in (@HOST@, @VICTIM@, os.getppid()):\n    for start in (0x400000, 0x10000):\n"
      "        there = (ctypes.c_uint64 * 2)(start, 16)\n"
      "        got = call(310, pid, vec, 1, there, 1, 0)\n"
      "        if got not in (-1, -38, -3, -13):\n            print('REACHED', got)",
      needs_root=True),
    A("reads memory by /proc", _tried("open('/proc/@HOST@/mem', 'rb') and 'REACHED'",
      "open('/proc/@VICTIM@/mem', 'rb') and 'REACHED'",
      "open(f'/proc/{os.getppid()}/mem', 'rb') and 'REACHED'"), needs_root=True),
    A("reads the host's environment", _tried("open('/proc/@HOST@/environ').read() and 'REACHED'",
      "open('/proc/@VICTIM@/environ').read() is not None and 'REACHED'")),
    A("reads command lines", _tried("open('/proc/@HOST@/cmdline').read() and 'REACHED'",
      "open('/proc/@VICTIM@/cmdline').read() and 'REACHED'")),
    A("lists processes", "import os\nif '@HOST@' in os.listdir('/proc'):\n    print('REACHED')"),
    A("takes a descriptor of the host", "import os\nfor fd in range(3, 60):\n    try:\n"
      "        print(open(f'/proc/@HOST@/fd/{fd}', 'rb').name, 'REACHED')\n"
      "    except OSError:\n        pass"),
    A("takes a descriptor by pidfd", f"{RAW}fd = call(434, @VICTIM@, 0)\n"
      "for each in range(3):\n    if fd >= 0 and call(438, fd, each, 0) >= 0:\n"
      "        print('REACHED')", needs_root=True),
    A("changes limits of a process", f"{RAW}for pid in (@VICTIM@, @OWN_VICTIM@):\n"
      "    call(302, pid, 7, (ctypes.c_uint64 * 2)(17, 17), None)"),
    A("changes priorities", _tried("os.setpriority(os.PRIO_PROCESS, @VICTIM@, 5) or 'REACHED'"),
      bare=False),
    A("pins a process", _tried("os.sched_setaffinity(@VICTIM@, os.sched_getaffinity(@VICTIM@)) or "
      "'REACHED'"), bare=False),
)  # fmt: skip

INHERITED = _attacks(
    "inherited",
    A("reads the environment", "import os\nprint(dict(os.environ))"),
    A("reads one variable by C", f"{RAW}libc.getenv.restype = ctypes.c_char_p\n"
      "print(libc.getenv(b'HOST_SECRET'))"),
    A("reads its own environment", "print(open('/proc/self/environ').read())"),
    A("searches its memory for the environment", f"{RAW}p = ctypes.POINTER(ctypes.c_char_p)"
      ".in_dll(libc, 'environ')\nfound = []\nfor i in range(100):\n    if not p or not p[i]:\n"
      "        break\n    found.append(p[i])\nprint(found)"),
    A("searches its objects", "import gc\nwords = ''.join(['s3cr3t', '-of-the-host'])\n"
      "for each in gc.get_objects():\n    if type(each) is dict:\n"
      "        for value in list(each.values()):\n"
      "            if type(value) is str and words in value and value is not words:\n"
      "                print('REACHED', value)", bare=False),
    A("reads inherited descriptors", "import os\nfor fd in range(3, 1024):\n    try:\n"
      "        print(os.pread(fd, 99, 0))\n    except OSError:\n        pass"),
    A("writes to inherited descriptors", "import os, stat\nfor fd in range(3, 1024):\n    try:\n"
      "        if stat.S_ISFIFO(os.fstat(fd).st_mode):\n            os.write(fd, b'x')\n"
      "    except OSError:\n        pass"),
    A("climbs from inherited directories", "import os\nfor fd in range(3, 1024):\n    try:\n"
      "        print(os.read(os.open('secret.txt', os.O_RDONLY, dir_fd=fd), 99))\n"
      "    except OSError:\n        pass"),
    A("reads standard input", "import os\nif os.read(0, 10):\n    print('REACHED')", bare=False),
    A("finds a terminal", "import os\nos.open('/dev/tty', os.O_RDWR)\nprint('REACHED')", bare=False),
    A("pushes characters into a terminal", f"{RAW}import fcntl\nfor fd in range(10):\n    try:\n"
      "        fcntl.ioctl(fd, 0x5412, b'x')\n        print('REACHED')\n"
      "    except OSError:\n        pass", bare=False),
    A("attaches shared memory", f"{RAW}libc.shmat.restype = ctypes.c_void_p\n"
      "at = libc.shmat(@SHM@, None, 0)\nif at != ctypes.c_void_p(-1).value:\n"
      "    print(ctypes.string_at(at, 20))"),
    A("finds shared memory by key", f"{RAW}if call(29, @SHM_KEY@, 0, 0) >= 0:\n    print('REACHED')"),
    A("reads keys of the kernel", f"{RAW}key = call(250, 10, -3, b'user', b'toolfold-canary', 0)\n"
      "there = ctypes.create_string_buffer(99)\nif key > 0 and call(250, 11, key, there, 99) > 0:\n"
      "    print(there.value)"),
)  # fmt: skip

_EXECUTABLE = f"""{RAW}libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [
    ctypes.c_long]
FAILED = ctypes.c_void_p(-1).value
def made(prot, flags=0x22, fd=-1):
    at = libc.mmap(None, 4096, prot, flags, fd, 0)
    return None if at == FAILED else at
"""

KERNEL = _attacks(
    "kernel",
    A("mounts over a directory", f"{RAW}call(165, b'none', b'@DIR@', b'tmpfs', 0, None)",
      bare=False),
    A("binds a directory", f"{RAW}os.makedirs('/tmp/m-@HOST@')\n"
      "if call(165, b'@DIR@', b'/tmp/m-@HOST@', None, 4096, None) == 0:\n"
      "    print(open('/tmp/m-@HOST@/secret.txt').read())", bare=False),
    A("leaves a changed root", f"{RAW}os.makedirs('/tmp/j-@HOST@', exist_ok=True)\n"
      "if call(161, b'/tmp/j-@HOST@') == 0:\n    print('REACHED')\n    os.chdir('../' * 40)\n"
      "    call(161, b'.')\n    print(open('@SECRET_FILE@').read())", needs_root=True),
    A("makes namespaces", f"{RAW}for flag in (0x10000000, 0x20000, 0x40000000, 0x8000000, 0x4000000, "
      "0x2000000, 0x20000000, 0x80):\n    if call(272, flag) == 0:\n        print('REACHED', flag)"),
    A("joins namespaces of the host", "import os\n"
      "for kind in ('user', 'mnt', 'net', 'pid', 'ipc', 'uts'):\n"
      "    try:\n        fd = os.open(f'/proc/@HOST@/ns/{kind}', os.O_RDONLY)\n"
      "        print('REACHED', kind)\n    except OSError:\n        pass"),
    A("renames the machine", f"{RAW}if call(170, b'canary', 6) == 0:\n    print('REACHED')",
      bare=False),
    A("becomes root", _tried(*(f"os.{each} or 'REACHED' * (os.getuid() == 0)" for each in
      ("setuid(0)", "seteuid(0)", "setresuid(0, 0, 0)", "setgid(0)", "setgroups([0])"))),
      needs_root=True),
    A("becomes another user", "import os\nbefore = os.getuid()\nos.setresuid(4321, 4321, 4321)\n"
      "print('REACHED' * (before != os.getuid()))", needs_root=True),
    A("takes capabilities", f"{RAW}import struct\nheader = struct.pack('<Ii', 0x20080522, 0)\n"
      "held = ctypes.create_string_buffer(24)\ncall(125, header, held)\n"
      "if any(struct.unpack('<6I', held.raw)):\n    print('REACHED', held.raw.hex())",
      needs_root=True),
    A("gets new privileges", f"{RAW}if libc.prctl(39, 0, 0, 0, 0) == 0:\n    print('REACHED')"),
    A("is seen as root outside", "import os\nfor line in open('/proc/self/uid_map'):\n"
      "    inside, outside, count = map(int, line.split())\n    if outside == 0:\n"
      "        print('REACHED', line)", needs_root=True),
    A("makes itself open to tracing", f"{RAW}if libc.prctl(4, 1, 0, 0, 0) == 0:\n"
      "    print('REACHED' * (libc.prctl(3, 0, 0, 0, 0) == 1))", bare=False),
    A("removes its filters", f"{RAW}for op, args in ((22, (0, 0)), (22, (2, 0)), (21, (0, 0))):\n"
      "    if libc.prctl(op, *args, 0, 0) == 0:\n        print('REACHED', op)", bare=False),
    A("calls by the numbers of x32", f"{RAW}if call(0x40000000 + 39) > 0:\n    print('REACHED')",
      bare=False),
    A("calls by numbers that do not exist", f"{RAW}for number in (-1, 10**6, 2**31 - 1, 2**32 + 57):\n"
      "    result = call(number)\n    if result == 0:\n        os._exit(0)\n    if result > 0:\n"
      "        print('REACHED', number)", bare=False),
    A("makes executable memory", f"{_EXECUTABLE}if made(7) or made(5):\n    print('REACHED')"),
    A("makes memory executable", f"{_EXECUTABLE}at = made(3)\n"
      "for prot in (5, 7, 4):\n    if call(10, ctypes.c_void_p(at), 4096, prot) == 0:\n"
      "        print('REACHED', prot)"),
    A("makes memory executable with a key", f"{_EXECUTABLE}at = made(3)\n"
      "if call(329, ctypes.c_void_p(at), 4096, 5, -1) == 0:\n    print('REACHED')"),
    A("makes reading mean executing", f"{_EXECUTABLE}if call(135, 0x0400000) >= 0:\n"
      "    print('REACHED')"),
    A("maps a file as executable", f"{_EXECUTABLE}f = open('/tmp/code-@HOST@', 'wb+')\n"
      "f.write(b'\\xc3' * 4096)\nf.flush()\nif made(5, 2, f.fileno()) or made(5, 1, f.fileno()):\n"
      "    print('REACHED')\nos.unlink('/tmp/code-@HOST@')"),
    A("loads a library that it wrote", "import ctypes, os, _ctypes\n"
      "path = '/tmp/lib-@HOST@.so'\nimport ctypes.util\n"
      "known = next(l.split()[-1] for l in open('/proc/self/maps') if '.so' in l)\n"
      "open(path, 'wb').write(open(known, 'rb').read())\ntry:\n    ctypes.CDLL(path)\n"
      "    print('REACHED')\nfinally:\n    os.unlink(path)"),
    A("writes code through its own memory", "import ctypes\nlibc = ctypes.CDLL(None)\n"
      "at = ctypes.cast(libc.getppid, ctypes.c_void_p).value\nf = open('/proc/self/mem', 'r+b', 0)\n"
      "f.seek(at)\nold = f.read(1)\nf.seek(at)\nf.write(old)\nprint('REACHED')"),
    A("raises its limits", f"{RAW}import resource\nfor which in range(16):\n"
      "    soft, hard = resource.getrlimit(which)\n    if hard == -1:\n        continue\n    try:\n"
      "        resource.setrlimit(which, (soft, hard + 1))\n        print('REACHED', which)\n"
      "    except (ValueError, OSError):\n        pass", bare=False),
    A("has no limit", "import resource\nfor name in ('AS', 'CORE', 'FSIZE', 'NOFILE', 'CPU'):\n"
      "    if resource.getrlimit(getattr(resource, f'RLIMIT_{name}'))[1] == -1:\n"
      "        print('REACHED', name)", bare=False),
    A("locks memory", f"{RAW}resource = __import__('resource')\nif call(151, 3) == 0:\n"
      "    print('REACHED')", needs_root=True),
    A("leaves a core behind", "import resource\nif resource.getrlimit(resource.RLIMIT_CORE) != (0, 0):\n"
      "    print('REACHED')", bare=False),
)  # fmt: skip

_CALLS: Final = {
    "io_uring": (425, 426, 427),
    "bpf": (321,),
    "perf_event_open": (298,),
    "userfaultfd": (323,),
    "keyctl, add_key, request_key": (248, 249, 250),
    "memfd_create, memfd_secret": (319, 447),
    "kexec": (246, 320),
    "kernel modules": (175, 176, 313),
    "mount and umount": (165, 166),
    "the mount calls of 2019": (428, 429, 430, 431, 432, 433, 442),
    "pivot_root and chroot": (155, 161),
    "unshare and setns": (272, 308),
    "ptrace": (101,),
    "process_vm and process_madvise": (310, 311, 440),
    "pidfd": (434, 438, 424),
    "quotas, swap and accounting": (179, 443, 167, 168, 163),
    "reboot": (169,),
    "the kernel log": (103,),
    "ports": (172, 173),
    "segments": (154,),
    "setting clocks": (164, 227, 159, 305),
    "host and domain names": (170, 171),
    "file handles": (303, 304),
    "fanotify": (300, 301),
    "System V memory": (29, 30, 31),
    "System V semaphores": (64, 65, 66),
    "System V messages": (68, 69, 70, 71),
    "POSIX message queues": (240, 241, 242, 243, 244, 245),
    "sockets": (41, 49, 50, 42, 43, 288),
    "exec": (59, 322),
    "fork and vfork": (58,),
    "changing users": (105, 106, 113, 114, 117, 119, 116, 122, 123),
    "capabilities": (126,),
    "kcmp": (312,),
    "moving pages": (256, 279),
    "memory policies": (237, 238),
    "scheduling": (142, 144, 314, 251),
    "splicing": (275, 276, 278),
    "asynchronous I/O": (206, 209),
    "hanging up": (153,),
    "ancient calls": (134, 136, 139, 174, 177, 178, 180, 212),
    "personality": (135,),
}
"""System calls of x86-64 that guest code has no business with, by number."""

_HARMLESS_IF_TAKEN: Final = "-1, -1, -1, -1, -1, -1"

SURFACE = [
    Attack(
        f"system calls: {name}",
        f"{RAW}for number in {numbers}:\n    result = call(number, {_HARMLESS_IF_TAKEN})\n"
        f"    if result not in (-1, -38):\n        print('{REACHED}', number, result)",
        bare=False,
    )
    for name, numbers in _CALLS.items()
]
"""Each with arguments that the kernel itself refuses, with an error other than these two."""

ATTACKS: Final = [*FILES, *WORKSPACE, *NETWORK, *PROCESSES, *INHERITED, *KERNEL, *SURFACE]
