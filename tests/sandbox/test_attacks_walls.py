"""The walls as the host sees them: who guests are, what they hold, what becomes of them."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from attacks.outside import SECRET
from attacks.tiers import LEVELS, TIERS, running
from guests import LIMITS, Host, host_modules, process_of, run, run_in, value_of

from toolfold.sandbox.cpython.kernel import missing_walls
from toolfold.sandbox.cpython.sandbox import CPythonSandbox, CPythonSession
from toolfold.sandbox.monty import MontySession

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CLONE, LANDLOCK, SECCOMP = 56, 444, 317
ANYBODY = 65533
sees_inside = pytest.mark.skipif(os.getuid() != 0, reason="a guest is open to nobody but root")
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")


@pytest.fixture(scope="module", params=LEVELS)
async def sandbox(
    request: pytest.FixtureRequest, anyio_backend: str
) -> AsyncIterator[CPythonSandbox]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOST_SECRET", SECRET)
        async with running(request.param) as sandbox:
            assert isinstance(sandbox, CPythonSandbox)
            yield sandbox


@pytest.fixture
async def session(sandbox: CPythonSandbox) -> AsyncIterator[CPythonSession]:
    async with sandbox.open(host_modules(), frozenset()) as session:
        yield session


def status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_a_guest_has_no_rights_and_is_nobody_outside(session: CPythonSession) -> None:
    found = status(session.guest.pid)

    assert found["NoNewPrivs"] == "1"
    assert found["Seccomp"] == "2"
    assert {int(found[f"Cap{each}"], 16) for each in ("Inh", "Prm", "Eff", "Amb")} == {0}
    assert set(found["Uid"].split()) == {str(os.getuid() or 65534)}
    assert set(found["Gid"].split()) == {str(os.getgid() or 65534)}
    assert found["Groups"] in {"", str(os.getgid())} or os.getuid() != 0


def with_package(patch: pytest.MonkeyPatch, name: str, home: Path) -> None:
    patch.setattr("toolfold.sandbox.cpython.pool.found_packages", lambda: {name: str(home)})


@pytest.mark.parametrize("level", LEVELS)
async def test_packages_below_what_guests_write_to_and_nobody_may_enter_are_there(
    level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as home:  # mode 0700
        package = Path(home, "little")
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "later.py").write_text("x = 1")
        with_package(monkeypatch, "little", Path(home))
        async with running(level) as sandbox:
            assert sandbox.level == level
            assert await value_of(sandbox, "import little.later\nlittle.later.x") == 1
            if level == "namespaces":
                code = f"import tempfile\ntempfile.TemporaryFile()\nopen('{package}/x', 'w')"
                outcome = await run(sandbox, code)
                assert outcome.failure is not None
                assert "OSError: [Errno 30]" in outcome.failure.message


async def test_a_package_beside_the_standard_library_is_there_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = Path(os.__file__).parent / "site-packages"
    if not (home / "pip").is_dir():
        pytest.skip("this Python has no packages below its library")
    with_package(monkeypatch, "pip", home)
    async with running("namespaces") as sandbox:
        code = f"import os, pip._vendor.idna\nos.listdir({str(home)!r})"
        assert await value_of(sandbox, code) == ["pip"]


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero", "/dev/urandom"])
async def test_devices_work_and_are_not_changed(sandbox: CPythonSandbox, device: str) -> None:
    before = Path(device).stat()
    code = (
        f"import os\nopen({device!r}, 'rb').read(1)\nopen('/dev/null', 'w').write('x')\n"
        f"tried = []\nfor change in (os.utime, lambda path: os.chmod(path, 0o600)):\n"
        f"    try:\n        tried.append(change({device!r}))\n"
        "    except OSError as error:\n        tried.append('refused')\ntried"
    )

    assert await value_of(sandbox.within(LIMITS), code) == ["refused", "refused"]
    after = Path(device).stat()
    assert (after.st_mtime_ns, after.st_mode) == (before.st_mtime_ns, before.st_mode)


async def test_the_bridge_takes_nothing_out_of_band(sandbox: CPythonSandbox) -> None:
    code = (
        "import socket\nbridge, found = socket.socket(1, 1, 0, 3), []\n"
        "for flag in range(31):\n    try:\n        bridge.send(b'', 1 << flag)\n"
        "    except PermissionError:\n        continue\n    except OSError:\n        pass\n"
        "    found.append(1 << flag)\nbridge.detach()\nfound"
    )
    allowed = [socket.MSG_DONTWAIT, socket.MSG_NOSIGNAL]

    assert await value_of(sandbox.within(LIMITS), code) == allowed


@sees_inside
@pytest.mark.parametrize("kind", ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"])
def test_with_namespaces_a_guest_shares_none_with_the_host(
    sandbox: CPythonSandbox, session: CPythonSession, kind: str
) -> None:
    if sandbox.level != "namespaces":
        pytest.skip("there are none at this level")

    inside = Path(f"/proc/{session.guest.pid}/ns/{kind}").readlink()

    assert inside != Path(f"/proc/self/ns/{kind}").readlink()


@sees_inside
def test_a_guest_holds_nothing_but_the_bridge(session: CPythonSession) -> None:
    folder = Path(f"/proc/{session.guest.pid}/fd")
    held = {int(entry.name): str(entry.readlink()).partition(":")[0] for entry in folder.iterdir()}

    assert [held[number] for number in range(4)] == ["/dev/null"] * 3 + ["socket"]
    assert set(list(held.values())[4:]) <= {"anon_inode"}  # what its event loop wakes up by


@sees_inside
def test_a_guest_has_no_environment(session: CPythonSession) -> None:
    assert Path(f"/proc/{session.guest.pid}/environ").read_bytes() == b""


async def test_a_guest_is_gone_when_its_session_is(sandbox: CPythonSandbox) -> None:
    async with sandbox.open({}, frozenset()) as session:
        ended = os.pidfd_open(session.guest.pid)
    try:
        with anyio.fail_after(60):
            await anyio.wait_readable(ended)
    finally:
        os.close(ended)


async def test_workers_of_monty_are_behind_walls_as_well(anyio_backend: str) -> None:
    async with running("monty") as sandbox, sandbox.open({}, frozenset()) as session:
        assert isinstance(session, MontySession)
        found = status(process_of(session))

    if missing_walls():
        pytest.skip("this kernel lacks them")
    assert found["NoNewPrivs"] == "1"
    assert found["Seccomp"] == "2"


LEFT = """
import json, os, random, sys
for place in ('/tmp', '/workspace', os.getcwd()):
    try:
        open(f'{place}/left', 'w').write('left')
    except OSError:
        pass
json.left = os.left = sys.left = 'left'
os.environ['LEFT'] = 'left'
sys.path.append('/left')
sys.modules['left'] = json
random.seed(1)
"""
FOUND = """
import json, os, random, sys
[
    *(f'{p}/left' for p in ('/tmp', '/workspace', os.getcwd()) if os.path.exists(f'{p}/left')),
    *(m.__name__ for m in (json, os, sys) if hasattr(m, 'left')),
    *(n for n in ('LEFT',) if n in os.environ),
    *(n for n in ('/left',) if n in sys.path),
    *(n for n in ('left',) if n in sys.modules),
    *(['seed'] if random.random() == random.Random(1).random() else []),
]
"""


async def test_a_guest_finds_nothing_that_another_left(sandbox: CPythonSandbox) -> None:
    async with sandbox.open({}, frozenset()) as session:
        await run_in(session, LEFT)
        assert len((await run_in(session, FOUND)).value) >= 5  # type: ignore[arg-type]

    for _ in range(5):
        assert await value_of(sandbox, FOUND) == []


async def test_guests_draw_different_random_numbers(sandbox: CPythonSandbox) -> None:
    code = "import os, random, uuid\n[random.random(), str(uuid.uuid4()), os.urandom(8).hex()]"
    drawn = [await value_of(sandbox, code) for _ in range(4)]

    assert len({repr(each) for each in drawn}) == 4
    assert len({each[0] for each in drawn}) == 4  # type: ignore[index]


async def test_a_guest_cannot_end_the_run_of_another(sandbox: CPythonSandbox) -> None:
    """Both are the same user outside, and without namespaces they see each other's numbers."""
    is_waiting, was_attacked = anyio.Event(), anyio.Event()
    pids, outcomes = [], []

    async def wait(_call: object) -> None:
        is_waiting.set()
        with anyio.fail_after(60):
            await was_attacked.wait()

    async def live() -> None:
        async with sandbox.open(host_modules(), frozenset()) as session:
            pids.append(session.guest.pid)
            code = "import host\nhost.wait()\n7"
            outcomes.append(await run_in(session, code, Host({"wait": wait})))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(live)
        await is_waiting.wait()
        await run(sandbox, KILL.replace("VICTIM", str(pids[0])))
        was_attacked.set()

    assert outcomes[0].value == 7


KILL = """
import os
for pid in (VICTIM, 1, -1):
    for number in (9, 15):
        try:
            os.kill(pid, number)
        except OSError:
            pass
"""


@pytest.mark.parametrize("tier", TIERS)
async def test_guests_die_with_a_host_that_is_killed(tier: str) -> None:
    """They compute for ever. A worker of Monty has no parent to die with, but its own clock."""
    command = [sys.executable, str(HERE / "attacks" / "abandoned.py"), tier]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as host:
        assert host.stdout
        guest = int(host.stdout.readline() or pytest.skip(f"{tier} is not to be had here"))
        parent = int(status(guest)["PPid"])
        processes = {guest, parent} - {host.pid}
        ended = [os.pidfd_open(pid) for pid in processes]
        host.send_signal(signal.SIGKILL)
    try:
        with anyio.fail_after(60):
            for each in ended:
                await anyio.wait_readable(each)
    finally:
        for each in ended:
            os.close(each)


def host_lacking(*numbers: int) -> str:
    script = HERE / "attacks" / "lacking.py"
    command = [sys.executable, str(script), *map(str, numbers)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True)
    return done.stdout.strip()


def test_without_landlock_no_python_runs() -> None:
    assert "Landlock" in host_lacking(LANDLOCK)


def test_without_seccomp_no_python_runs() -> None:
    said = host_lacking(SECCOMP)

    assert said.startswith("none: ")
    assert "seccomp" in said


def test_without_namespaces_landlock_and_seccomp_stand_alone() -> None:
    unshare = 272

    assert host_lacking(unshare) == "landlock"


def interpreter_for(user: int) -> list[str]:
    """Return a command that runs this project's Python as somebody else, or skip."""
    setpriv = shutil.which("setpriv") or pytest.skip("there is no setpriv")
    # By way of env: what setpriv starts itself is found with the rights that it gives up.
    become = [setpriv, f"--reuid={user}", f"--regid={user}", "--clear-groups", "env"]
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, shutil.which(version, path="/usr/bin:/usr/local/bin")):
        command = [*become, candidate or "false"]
        if subprocess.run([*command, "-c", ""], check=False).returncode == 0:
            return command
    pytest.skip(f"there is no {version} that another user could start")


def attacked_by_anybody(*options: str) -> "subprocess.CompletedProcess[str]":
    packages = [str(ROOT / "src"), *(path for path in sys.path if path.endswith("-packages"))]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(packages),
        "PYTHONDONTWRITEBYTECODE": "1",
        "MONTY_BIN": str(Path(sys.executable).with_name("monty")),
    }
    flags = ["-q", "-p", "no:cacheprovider", *options]
    return subprocess.run(
        [*interpreter_for(ANYBODY), "-m", "pytest", *flags],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@as_root
@pytest.mark.timeout(120)
def test_an_unprivileged_host_is_as_safe() -> None:
    """Its guests are the user outside: nothing but the walls protects what is the user's."""
    done = attacked_by_anybody(
        str(HERE / "test_attacks.py"),
        "-k",
        "nothing_outside and (namespaces or landlock) and (changes or kills or signals or traces "
        "or connects or forks)",
    )

    assert done.returncode == 0, done.stdout[-5_000:]
    assert " passed" in done.stdout


@as_root
@pytest.mark.soak
def test_an_unprivileged_host_is_as_safe_from_everything() -> None:
    done = attacked_by_anybody(
        str(HERE / "test_attacks.py"),
        str(HERE / "test_attacks_limits.py"),
        str(HERE / "test_attacks_walls.py"),
    )

    assert done.returncode == 0, done.stdout[-5_000:]
