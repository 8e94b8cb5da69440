"""`toolfold doctor`: say of each part whether it works, and what to do where it does not."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Final, Literal

import anyio

from toolfold.app import App
from toolfold.catalog.login.logins import login_state
from toolfold.config.config import Config, current_directory, environment
from toolfold.config.faults import shown
from toolfold.config.servers import ServerFault
from toolfold.entrypoints.commands.probe import probe_relay
from toolfold.entrypoints.install.drift import drift
from toolfold.entrypoints.install.found import found_clients, next_command
from toolfold.entrypoints.screen import Cell, count, print_json, print_line, working
from toolfold.errors import ConfigError, ToolfoldError
from toolfold.policy.files import PolicyFiles
from toolfold.sandbox.sandbox import GuestCall, Program
from toolfold.skills.models import SkillFault

Status = Literal["ok", "FAILED", "off", "!"]
_STYLES: Final[dict[Status, str]] = {"ok": "good", "FAILED": "bad", "off": "dim", "!": "warn"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What came of looking at one part."""

    name: str
    status: Status
    detail: str
    seconds: float | None = None


@dataclass(slots=True)
class Findings:
    """What was found so far; each line is printed as it comes, unless all is wanted as JSON."""

    is_quiet: bool = False
    checks: list[Check] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)

    def add(self, status: Status, name: str, detail: str, started: float | None = None) -> None:
        """Take in one more, which took from `started` until now."""
        seconds = None if started is None else time.perf_counter() - started
        detail = " ".join(detail.split())
        self.checks.append(Check(name=name, status=status, detail=detail, seconds=seconds))
        if not self.is_quiet:
            elapsed = f"  ({seconds:.1f} s)" if seconds is not None else ""
            said = f"{name}: {detail}" if name else detail
            print_line(Cell(f"{status:<9}", _STYLES[status]), f" {said}{elapsed}")

    @property
    def failed(self) -> list[Check]:
        """Return what does not work, or should be looked at."""
        return [each for each in self.checks if each.status in {"FAILED", "!"}]

    def finish(self) -> int:
        """Print the summary, or everything as JSON; return the exit status."""
        if self.is_quiet:
            checks = [asdict(each) for each in self.checks]
            print_json({"ok": not self.failed, "checks": checks, "hints": self.hints})
        else:
            self._print_summary()
        return int(bool(self.failed))

    def _print_summary(self) -> None:
        print()
        for hint in self.hints:
            print(hint)
        if not self.failed:
            print_line(Cell("Everything works.", "good"))
            return
        problems = count(len(self.failed), "problem")
        names = ", ".join(each.name or each.detail for each in self.failed[:5])
        print_line(Cell(f"{problems}: ", "bad"), shown(names))


def examine_configuration(config: Config, findings: Findings) -> None:
    """Say where things are read from, and what could not be taken."""
    sources = ", ".join(map(str, config.sources))
    expected = config.directories.config / "mcp.json"
    if not findings.is_quiet:
        print(f"project   {config.project or 'none (no .git or .toolfold above this directory)'}")
        print(f"config    {sources or f'none: put your servers into {expected}'}")
    for fault in config.faults:
        if not isinstance(fault, ServerFault):
            findings.add("!", "", str(fault))
    for line in drift(config.directories, environment(), current_directory()):
        findings.add("!", "", line)
    try:
        PolicyFiles(config).policy()
    except ConfigError as error:
        findings.add("FAILED", "policy", str(error))
    found = found_clients(config.directories, environment(), current_directory())
    if command := next_command(found):
        waiting = [each for each in found if each.servers and not each.is_installed]
        told = ", ".join(f"{each.client} has {count(each.servers, 'server')}" for each in waiting)
        findings.hints.append(f"Not yet with toolfold: {told}. `{command}` moves them.")


def examine_relay(options: Sequence[str], findings: Findings) -> None:
    """Try what clients start."""
    with working("reaching the daemon"):
        works, detail = probe_relay(options)
    findings.add("ok" if works else "FAILED", "daemon", detail)


async def examine(app: App, findings: Findings) -> None:
    """Run code, connect to every server, and check the skills."""
    await _examine_monty(app, findings)
    await _examine_cpython(app, findings)
    async with anyio.create_task_group() as tasks:
        for module in app.catalog.servers:
            tasks.start_soon(_examine_server, app, module, findings)
    for each in app.library.all():
        if isinstance(each, SkillFault):
            findings.add("FAILED", f"skill {shown(each.name)}", shown(str(each), max_chars=500))
    statuses = app.catalog.statuses()
    for status in statuses:
        if status.module is None:
            findings.add("FAILED", status.name, str(status.fault))
    if not statuses:
        where = app.config.directories.config / "mcp.json"
        findings.add("off", "servers", f"none is configured; put yours into {where}")


async def _examine_monty(app: App, findings: Findings) -> None:
    """Run a line in the sandbox itself: what is only tried shall not be among the user's runs."""
    started = time.perf_counter()
    walls = "behind Landlock and seccomp" if app.tiers.monty_is_walled else "without kernel walls"
    try:
        async with app.tiers.sandbox("monty").open({}, frozenset()) as session:
            outcome = await session.run(Program(source="1 + 1"), _no_calls)
    except ToolfoldError as error:
        findings.add("FAILED", "sandbox", str(error), started)
        return
    if outcome.value == 2:
        findings.add("ok", "sandbox", f"runs code, Monty {walls}", started)
    else:
        said = outcome.failure.message if outcome.failure else f"1 + 1 is {outcome.value!r}"
        findings.add("FAILED", "sandbox", said, started)


async def _no_calls(_call: GuestCall) -> None:
    """Answer nothing: there is nothing to call."""


async def _examine_cpython(app: App, findings: Findings) -> None:
    """Say whether all of Python can be had; that it cannot is a problem if it was asked for."""
    started = time.perf_counter()
    works, detail = await app.tiers.examine()
    if works or app.config.settings.sandbox == "cpython":
        findings.add("ok" if works else "FAILED", "cpython", detail, started)
    else:
        findings.add("off", "cpython", detail)


async def _examine_server(app: App, module: str, findings: Findings) -> None:
    started = time.perf_counter()
    await app.catalog.learn([module], fresh=True)
    status = next(s for s in app.catalog.statuses() if s.module == module)
    tools = count(status.tools or 0, "tool")
    login = _login_words(app.config, status.name)
    detail = status.fault or f"{tools} as `import {module}`, MCP {status.protocol}{login}"
    findings.add("ok" if status.fault is None else "FAILED", status.name, detail, started)


def _login_words(config: Config, name: str) -> str:
    """Say how it stands with a login; nothing where none is used."""
    [server] = [server for server in config.servers if server.name == name]
    state = login_state(server, config.directories)
    return f", {state}" if state.status in {"valid", "ended"} else ""
