"""`toolfold doctor`: say of each part whether it works, and what to do where it does not."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final, Literal, NamedTuple
from urllib.parse import urlsplit

import anyio

from toolfold.app import App, guest_place
from toolfold.catalog.binding import parameters_of
from toolfold.catalog.login.logins import login_state
from toolfold.catalog.tool import Tool
from toolfold.config.config import Config, current_directory, environment
from toolfold.config.servers import ServerFault
from toolfold.entrypoints.commands.daemon import ask_daemon, find_daemon
from toolfold.entrypoints.commands.probe import probe_relay
from toolfold.entrypoints.install.approval import approval_ways
from toolfold.entrypoints.install.drift import drift
from toolfold.entrypoints.install.found import found_clients, next_command
from toolfold.entrypoints.screen import Cell, print_json, print_line, working
from toolfold.errors import ConfigError, StoreError, ToolfoldError, count, shown
from toolfold.execution.report import RunReport
from toolfold.execution.service import RunRequest
from toolfold.journal.runs import Origin
from toolfold.policy.files import PolicyFiles
from toolfold.sandbox.sandbox import GuestCall, Program
from toolfold.skills.models import SkillFault

Status = Literal["ok", "fixed", "FAILED", "off", "!"]
_STYLES: Final[dict[Status, str]] = {
    "ok": "good",
    "fixed": "good",
    "FAILED": "bad",
    "off": "dim",
    "!": "warn",
}


class Fix(NamedTuple):
    """What to do about a problem. `apply` does it, where that is safe, and says what it did."""

    words: str
    apply: Callable[[], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What came of looking at one part."""

    name: str
    status: Status
    detail: str
    seconds: float | None = None
    fix: str = ""


@dataclass(slots=True)
class Findings:
    """What was found so far; each line is printed as it comes, unless all is wanted as JSON."""

    is_quiet: bool = False
    is_fixing: bool = False
    """Whether problems are fixed where that is safe, as they are found."""
    fixable: int = 0
    checks: list[Check] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)

    def add(
        self,
        status: Status,
        name: str,
        detail: str,
        started: float | None = None,
        fix: Fix | None = None,
    ) -> None:
        """Take in one more, which took from `started` until now, and fix it where that is asked."""
        words = fix.words if fix else ""
        if fix is not None and fix.apply is not None:
            if self.is_fixing:
                status, detail, words = _applied(fix, fix.apply, status, detail)
            else:
                self.fixable += 1
        seconds = None if started is None else time.perf_counter() - started
        detail = " ".join(detail.split())
        check = Check(name=name, status=status, detail=detail, seconds=seconds, fix=words)
        self.checks.append(check)
        if not self.is_quiet:
            _print_check(check)

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
        if self.fixable:
            print(f"`toolfold doctor --fix` fixes {self.fixable} of them.")


def _applied(
    fix: Fix, apply: Callable[[], str], status: Status, detail: str
) -> tuple[Status, str, str]:
    """Apply a fix; return the status, the detail and what is left to do."""
    try:
        return "fixed", f"{detail}. Done: {apply()}", ""
    except (OSError, ToolfoldError) as error:
        return status, f"{detail}. It could not be fixed: {error}", fix.words


def _print_check(check: Check) -> None:
    elapsed = f"  ({check.seconds:.1f} s)" if check.seconds is not None else ""
    said = f"{check.name}: {check.detail}" if check.name else check.detail
    print_line(Cell(f"{check.status:<9}", _STYLES[check.status]), f" {said}{elapsed}")
    if check.fix:
        print_line(Cell(f"{'':<9} fix: {check.fix}", "dim"))


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
    for client, way in approval_ways(config):
        findings.add("ok", f"approvals in {client}", way)
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


def examine_edits(findings: Findings) -> None:
    """Say which edits of files a running daemon could not take over."""
    answer = ask_daemon(find_daemon(), "status") or {}
    for edit in answer.get("unusable", []):
        findings.add("FAILED", "files", str(edit))


async def examine(app: App, findings: Findings) -> None:
    """Run code, connect to every server, and check the skills."""
    await _examine_monty(app, findings)
    await _examine_cpython(app, findings)
    await _examine_memory(app, findings)
    async with anyio.create_task_group() as tasks:
        for module in app.catalog.servers:
            tasks.start_soon(_examine_server, app, module, findings)
    for each in app.library.all():
        if isinstance(each, SkillFault):
            findings.add("FAILED", f"skill {shown(each.name)}", shown(str(each), max_chars=500))
    statuses = app.catalog.statuses()
    for status in statuses:
        if status.module is None:
            findings.add("FAILED", status.name, str(status.fault), fix=_server_fix(status.name))
    if not statuses:
        where = app.config.directories.config / "mcp.json"
        findings.add("off", "servers", f"none is configured; put yours into {where}")


async def learn_shapes(app: App, origin: Origin, findings: Findings) -> None:
    """Call each tool that only reads and needs no argument, where it is not known what it returns.

    Such a call is a run as any other: rules, privacy and the audit log hold for it.
    """
    for tool in [each for each in app.catalog.tools if _can_be_tried(app, each)]:
        started = time.perf_counter()
        code = f"import {tool.module}\n{tool.path}()"
        report = await app.runs.run(RunRequest(code=code, origin=origin))
        seen = app.catalog.seen(tool)
        if seen is not None:
            findings.add("ok", f"learned {tool.path}", f"returns {seen}", started)
        else:
            said = report.trouble if isinstance(report, RunReport) and report.trouble else ""
            detail = shown(said or "it did not answer", max_chars=200)
            findings.add("off", f"learned nothing of {tool.path}", detail, started)


def _can_be_tried(app: App, tool: Tool) -> bool:
    listed = tool.listed
    required = parameters_of(tool).required
    is_known = listed.output_schema is not None or app.catalog.seen(tool) is not None
    return listed.read_only and not (tool.is_built_in or required or is_known)


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


async def _examine_memory(app: App, findings: Findings) -> None:
    """Say where memory is, if not in a file as all else is."""
    if not (url := app.config.settings.database_url):
        return
    started = time.perf_counter()
    try:
        services = await app.shared.memories.services(guest_place(app.config))
        health = await services.notes.health()
    except StoreError as error:
        findings.add("FAILED", "database", str(error), started)
        return
    notes = f"{count(health.count, 'note')} of this project"
    detail = (
        f"PostgreSQL at {_place_of(url)} keeps API keys and memory ({notes}); all else is local"
    )
    findings.add("ok", "database", detail, started)


def _place_of(url: str) -> str:
    """Return where a database is, without the user and the password."""
    parts = urlsplit(url)
    return f"{parts.hostname or 'localhost'}:{parts.port or 5432}{parts.path}"


def _protocol(spoken: str | None) -> str:
    """Return what a server speaks: a version of MCP, or what describes an API."""
    return f"MCP {spoken}" if (spoken or "")[:1].isdigit() else str(spoken)


async def _examine_server(app: App, module: str, findings: Findings) -> None:
    started = time.perf_counter()
    await app.catalog.learn([module], fresh=True)
    status = next(s for s in app.catalog.statuses() if s.module == module)
    tools = count(status.tools or 0, "tool")
    login = _login_words(app.config, status.name)
    detail = status.fault or f"{tools} as `import {module}`, {_protocol(status.protocol)}{login}"
    if status.fault is None:
        findings.add("ok", status.name, detail, started)
    else:
        findings.add("FAILED", status.name, detail, started, _server_fix(status.name))
    for each in status.left_out:
        findings.add("!", status.name, f"left out: {each}")


def _server_fix(name: str) -> Fix:
    name = shown(name)
    return Fix(
        f"correct it in mcp.json, or `toolfold remove {name}`; `toolfold logs {name}` shows more"
    )


def _login_words(config: Config, name: str) -> str:
    """Say how it stands with a login; nothing where none is used."""
    [server] = [server for server in config.servers if server.name == name]
    state = login_state(server, config.directories)
    return f", {state}" if state.status in {"valid", "ended"} else ""
