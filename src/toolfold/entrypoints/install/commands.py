"""`toolfold install`, `uninstall`, `sync` and `init`: print what will be done, then do it."""

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from toolfold.config.config import current_directory, environment, load_config
from toolfold.config.harmless import MASK
from toolfold.config.paths import Directories
from toolfold.entrypoints.install.approval import approval_way
from toolfold.entrypoints.install.clients import (
    CLIENTS,
    ClientFile,
    ClientName,
    InstallContext,
    InstallScope,
    find_client_file,
)
from toolfold.entrypoints.install.describe import describe_fold, describe_unfold
from toolfold.entrypoints.install.diffs import diff
from toolfold.entrypoints.install.drift import installed_files
from toolfold.entrypoints.install.files import Files
from toolfold.entrypoints.install.fold import Installer
from toolfold.entrypoints.install.hooks import HooksPlan, plan_adding, plan_removing
from toolfold.entrypoints.install.records import FileRecords
from toolfold.entrypoints.install.rules import forget_rules
from toolfold.entrypoints.install.starter import write_starters
from toolfold.entrypoints.install.unfold import Uninstaller
from toolfold.entrypoints.mcp.first_manifest import write_first_manifest
from toolfold.entrypoints.parser import confirm, unknown
from toolfold.entrypoints.screen import print_json
from toolfold.errors import ConfigError
from toolfold.storage.files import wait_for_lock
from toolfold.storage.secrets import SecretStore


class InstallReport:
    """Prints what is done to clients; for programs, keeps it and prints it at the end as JSON."""

    def __init__(self, arguments: Namespace) -> None:
        self.facts: dict[str, object] = {"dry_run": bool(arguments.dry_run), "changed": False}
        self.failed: dict[str, str] = {}
        self._is_json = bool(arguments.json)
        self._clients: list[dict[str, object]] = []

    @property
    def status(self) -> int:
        """The exit status."""
        return 1 if self.failed else 0

    def begin(self, place: ClientFile, **facts: object) -> None:
        """Begin with a client's file."""
        self._clients.append({"client": place.client, "file": str(place.path), **facts})

    def note(self, **facts: object) -> None:
        """Add to what is said of the client's file for programs."""
        self._clients[-1] |= facts

    def say(self, *lines: str) -> None:
        """Print for people."""
        if not self._is_json:
            print("\n".join(lines), flush=True)

    def finish(self) -> int:
        """Print for programs; return the exit status."""
        if self._is_json:
            print_json({**self.facts, "clients": self._clients, "failed": self.failed})
        return self.status


def install(arguments: Namespace) -> int:
    """Move the servers of clients to toolfold, and put toolfold instead."""
    context, files = _install_context(), Files(dry_run=arguments.dry_run)
    report = InstallReport(arguments)
    places = _chosen(arguments.clients, _scope(arguments), context, report)
    with _locked(context, files):
        may_move = partial(_may_move_secrets, arguments)
        fold = _folding(
            context, files, report, keep=lambda _: arguments.keep, move_secrets=may_move
        )

        def fold_and_hook(place: ClientFile) -> None:
            is_hooked = arguments.hooks and place.client == "claude"
            hooks = plan_adding(place, context, files) if is_hooked else None
            fold(place)
            if hooks is not None:
                _change_hooks(hooks, files, report)
            elif arguments.hooks:
                report.say("  hooks       none: toolfold has hooks for claude alone")
            _tell_approvals(place, context, report, is_hooked=is_hooked)

        _each(places, fold_and_hook, files, report)
    return report.finish()


def unfold(arguments: Namespace) -> InstallReport:
    """Take toolfold out of clients, and put their servers back."""
    context, files = _install_context(), Files(dry_run=arguments.dry_run)
    report = InstallReport(arguments)
    places = _chosen(arguments.clients, _scope(arguments), context, report, may_be_none=True)
    records = FileRecords(context.directories.state, files)
    unfolder = Uninstaller(files, records, SecretStore(context.directories.data))

    def unfold_one(place: ClientFile) -> None:
        plan = unfolder.plan(place)
        report.begin(
            place,
            changed=plan.text != plan.was,
            put_back=[moved.name for moved in plan.back],
            not_put_back=[{"name": moved.name, "reason": reason} for moved, reason in plan.lost],
        )
        report.say(*describe_unfold(plan, backup=records.path_of(place)))
        unfolder.apply(plan)
        if number := forget_rules(place, context, files):
            holds = "holds" if number == 1 else "hold"
            report.say(f"  rules       {number} of the client {holds} only there again")
        if place.client == "claude":
            _change_hooks(plan_removing(place, context, files), files, report)

    with _locked(context, files):
        _each(places, unfold_one, files, report)
    return report


def sync(arguments: Namespace) -> int:
    """Fold in what was added to clients after install."""
    context, files = _install_context(), Files(dry_run=arguments.dry_run)
    with _locked(context, files):
        records = FileRecords(context.directories.state, files)
        keeps = dict(installed_files(context, records))
        named = _clients(arguments.clients) if arguments.clients else CLIENTS
        places = [place for place in keeps if place.client in named]
        if not places:
            raise ConfigError(
                f"toolfold is not installed in {_listed(named)}. `toolfold install` does that."
            )
        report = InstallReport(arguments)
        fold = _folding(context, files, report, keep=keeps.__getitem__)
        _each(places, fold, files, report)
    return report.finish()


def init(arguments: Namespace) -> int:
    """Write a starter configuration; what is there is never overwritten."""
    context, files = _install_context(), Files()
    folder = context.project / ".toolfold" if arguments.project else context.directories.config
    written = dict(write_starters(folder, files))
    if arguments.json:
        made = [{"file": str(path), "written": is_new} for path, is_new in written.items()]
        print_json({"files": made})
        return 0
    for path, is_new in written.items():
        print(f"{path} {'written' if is_new else 'exists already; unchanged'}.")
    then = "`toolfold trust` lets them start, then " if arguments.project else ""
    print(f"Put your servers into mcp.json; {then}`toolfold doctor` checks them.")
    return 0


def _may_move_secrets(arguments: Namespace, count: int) -> bool:
    """Whether tokens become secrets: as the command says, else as the person at the terminal."""
    is_person = sys.stdin.isatty() and sys.stdout.isatty()
    if arguments.move_secrets or arguments.dry_run or arguments.json or not is_person:
        return bool(arguments.move_secrets)
    tokens = "1 token stands" if count == 1 else f"{count} tokens stand"
    return confirm(
        f"{tokens} in these entries. Keep them as secrets of toolfold instead?", yes=False
    )


def _folding(
    context: InstallContext,
    files: Files,
    report: InstallReport,
    *,
    keep: Callable[[ClientFile], bool],
    move_secrets: Callable[[int], bool] = lambda _count: False,
) -> Callable[[ClientFile], None]:
    records = FileRecords(context.directories.state, files)
    folder = Installer(context, files, records)

    def fold(place: ClientFile) -> None:
        plan = folder.plan(place, keep=keep(place), move_secrets=move_secrets)
        report.begin(
            place,
            changed=plan.is_changed,
            moved=[moved.alias for moved in plan.moved],
            secrets=list(plan.tokens),
            stays=[{"name": each.name, "reason": each.reason} for each in plan.stays],
            backup=str(records.path_of(place)) if plan.is_changed else None,
        )
        report.say(*describe_fold(plan, backup=records.path_of(place)))
        folder.apply(plan)

    return fold


def _tell_approvals(
    place: ClientFile, context: InstallContext, report: InstallReport, *, is_hooked: bool
) -> None:
    """Say who will ask about tools that change something, and where that is changed."""
    try:
        approvals = load_config().settings.approvals
    except ConfigError:  # said where anything is run
        return
    way = approval_way(place.client, approvals, context, (), is_hooked=is_hooked)
    report.note(approvals=way)
    report.say(f"  approvals   {way} (`toolfold policy`)")


def _change_hooks(plan: HooksPlan, files: Files, report: InstallReport) -> None:
    report.note(hooks_changed=plan.is_changed)
    if lines := list(plan.describe()):
        report.say(*lines)
    plan.apply(files)


def _each(
    places: Sequence[ClientFile],
    act: Callable[[ClientFile], None],
    files: Files,
    report: InstallReport,
) -> None:
    """Act on every place; where one fails the others go on, and the report says so."""
    for place in places:
        try:
            act(place)
        except ConfigError as error:
            if len(places) == 1:
                raise
            print(f"toolfold: {place.title}: {error}", file=sys.stderr)
            report.failed[place.client] = str(error)
    if files.dry_run:
        _say_diffs(files, report)
        return
    write_first_manifest()
    report.facts["changed"] = files.has_written
    if not report.failed:
        done = "Done. Restart your clients to see it."
        report.say(done if files.has_written else "Nothing changed.")


def _say_diffs(files: Files, report: InstallReport) -> None:
    diffs = {
        str(path): "\n".join(diff(path, before, after))
        for path, before, after in files.pretended()
        if path.parent.name != "backups"
    }
    report.facts["diffs"] = diffs
    said = [*diffs.values()]
    if any(MASK in text for text in said):
        said.append(f"{MASK} hides what may be a secret; the files get it unchanged.")
    report.say(*said, "This was a dry run: nothing was changed.")


def _chosen(
    names: Sequence[str],
    scope: InstallScope,
    context: InstallContext,
    report: InstallReport,
    *,
    may_be_none: bool = False,
) -> list[ClientFile]:
    """Return the places that were asked for; of `all`, those that are in use."""
    if not names:
        raise ConfigError(f"Name a client: {_listed(CLIENTS)}, or all. {_overview(scope, context)}")
    if "all" not in names:
        return [find_client_file(client, scope, context) for client in _clients(names)]
    places = [find_client_file(client, scope, context) for client in CLIENTS]
    for place in places:
        if not place.is_in_use:
            report.say(f"{place.title}: not in use here, skipped")
    found = [place for place in places if place.is_in_use]
    if not found and not may_be_none:
        raise ConfigError(f"None of these clients was found here: {_listed(CLIENTS)}.")
    return found


def _clients(names: Sequence[str]) -> tuple[ClientName, ...]:
    for name in names:
        if name not in CLIENTS:
            raise ConfigError(unknown("client", name, (*CLIENTS, "all"), see=""))
    return tuple(client for client in CLIENTS if client in names)


def _overview(scope: InstallScope, context: InstallContext) -> str:
    places = [find_client_file(client, scope, context) for client in CLIENTS]
    found = [f"{place.client} ({place.path})" for place in places if place.is_in_use]
    return f"Found here: {', '.join(found) or 'none of them'}."


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _scope(arguments: Namespace) -> InstallScope:
    return "project" if arguments.project else "user"


def _install_context() -> InstallContext:
    environ = environment()
    return InstallContext(
        directories=Directories.from_environ(environ), environ=environ, cwd=current_directory()
    )


@contextmanager
def _locked(context: InstallContext, files: Files) -> Iterator[None]:
    """Keep out other processes that install, or one would undo the other."""
    if files.dry_run:
        yield
        return
    path = context.directories.state / "install.lock"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = path.open("a")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.") from error
    with lock:
        wait_for_lock(lock.fileno())
        yield
