"""`toolfold doctor`: say of each part whether it works, and what to do where it does not."""

import time
from collections.abc import Sequence

import anyio

from toolfold.app import App
from toolfold.catalog.catalog import ServerStatus
from toolfold.catalog.login.logins import login_state
from toolfold.config.config import Config, current_directory, environment
from toolfold.config.faults import shown
from toolfold.config.servers import ServerFault
from toolfold.entrypoints.commands.probe import probe_relay
from toolfold.entrypoints.install.drift import drift
from toolfold.skills.models import SkillFault


def print_configuration(config: Config) -> None:
    """Print where things are read from, and what could not be taken."""
    print(f"project   {config.project or 'none (no .git or .toolfold above this directory)'}")
    sources = ", ".join(map(str, config.sources))
    expected = config.directories.config / "mcp.json"
    print(f"config    {sources or f'none: put your servers into {expected}'}")
    for fault in config.faults:
        if not isinstance(fault, ServerFault):
            print(f"!         {fault}")
    for line in drift(config.directories, environment(), current_directory()):
        print(f"!         {line}")


def examine_relay(options: Sequence[str]) -> bool:
    """Try what clients start, and print whether it works."""
    works, detail = probe_relay(options)
    _line(works, "daemon", detail, None)
    return works


async def examine(app: App) -> int:
    """Run code, connect to every server, print a line for each. Return 1 if anything is wrong."""
    problems = 0
    started = time.perf_counter()
    result = await app.runtime.run("1 + 1")
    works = result.success and result.value == 2
    problems += not works
    walls = "behind Landlock and seccomp" if app.tiers.monty_is_walled else "without kernel walls"
    _line(works, "sandbox", f"runs code, Monty {walls}" if works else result.text, started)
    problems += await _examine_cpython(app)
    async with anyio.create_task_group() as tasks:
        for module in app.catalog.servers:
            tasks.start_soon(_examine_server, app, module)
    problems += _examine_skills(app)
    return 1 if problems or any(s.fault for s in _print_broken(app)) else 0


def _examine_skills(app: App) -> int:
    """Say which skills cannot be used; return how many."""
    broken = [each for each in app.library.all() if isinstance(each, SkillFault)]
    for fault in broken:
        _line(False, f"skill {shown(fault.name)}", shown(str(fault), max_chars=500), None)
    return len(broken)


async def _examine_cpython(app: App) -> int:
    """Say whether all of Python can be had; that it cannot is a problem if it was asked for."""
    started = time.perf_counter()
    works, detail = await app.tiers.examine()
    if works or app.config.settings.sandbox == "cpython":
        _line(works, "cpython", detail, started)
        return int(not works)
    print(f"{'off':<9} cpython: {' '.join(detail.split())}")
    return 0


async def _examine_server(app: App, module: str) -> None:
    started = time.perf_counter()
    await app.catalog.learn([module], fresh=True)
    status = next(s for s in app.catalog.statuses() if s.module == module)
    detail = status.fault or (
        f"{status.tools} tools as `import {module}`, MCP {status.protocol}"
        f"{_login_words(app.config, status.name)}"
    )
    _line(status.fault is None, status.name, detail, started)


def _login_words(config: Config, name: str) -> str:
    """Say how it stands with a login; nothing where none is used."""
    [server] = [server for server in config.servers if server.name == name]
    state = login_state(server, config.directories)
    return f", {state}" if state.status in {"valid", "ended"} else ""


def _print_broken(app: App) -> list[ServerStatus]:
    statuses = app.catalog.statuses()
    for status in statuses:
        if status.module is None:
            _line(False, status.name, str(status.fault), None)
    if not statuses:
        print("!         no server is configured")
    return statuses


def _line(works: bool, name: str, detail: str, started: float | None) -> None:
    elapsed = f"  ({time.perf_counter() - started:.1f} s)" if started is not None else ""
    print(f"{'ok' if works else 'FAILED':<9} {name}: {' '.join(detail.split())}{elapsed}")
