"""`toolfold install`, `uninstall`, `sync` and `init`: print what will be done, then do it."""

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from toolfold.config.config import current_directory, environment
from toolfold.config.paths import Directories
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
from toolfold.entrypoints.parser import unknown
from toolfold.errors import ConfigError
from toolfold.storage.locks import wait_for_lock


def install(arguments: Namespace) -> int:
    """Move the servers of clients to toolfold, and put toolfold in their place."""
    context, files = _install_context(), Files(dry_run=arguments.dry_run)
    places = _chosen(arguments.clients, _scope(arguments), context)
    with _locked(context, files):
        fold = _folding(context, files, keep=lambda _: arguments.keep)

        def fold_and_hook(place: ClientFile) -> None:
            is_hooked = arguments.hooks and place.client == "claude"
            hooks = plan_adding(place, context, files) if is_hooked else None
            fold(place)
            if hooks is not None:
                _change_hooks(hooks, files)
            elif arguments.hooks:
                print("  hooks       none: toolfold has hooks for claude alone")

        return _each(places, fold_and_hook, files)


def uninstall(arguments: Namespace) -> int:
    """Take toolfold out of clients, and put their servers back."""
    context, files = _install_context(), Files(dry_run=arguments.dry_run)
    places = _chosen(arguments.clients, _scope(arguments), context)
    records = FileRecords(context.directories.state, files)
    unfolder = Uninstaller(files, records)

    def unfold(place: ClientFile) -> None:
        plan = unfolder.plan(place)
        print("\n".join(describe_unfold(plan, backup=records.path_of(place))), flush=True)
        unfolder.apply(plan)
        if count := forget_rules(place, context, files):
            print(f"  rules       {count} of the client hold only there again")
        if place.client == "claude":
            _change_hooks(plan_removing(place, context, files), files)

    with _locked(context, files):
        return _each(places, unfold, files)


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
        return _each(places, _folding(context, files, keep=keeps.__getitem__), files)


def init(arguments: Namespace) -> int:
    """Write a starter configuration; what is there is never overwritten."""
    context, files = _install_context(), Files()
    folder = context.project / ".toolfold" if arguments.project else context.directories.config
    for path, is_new in write_starters(folder, files):
        print(f"{path} {'written' if is_new else 'exists already; unchanged'}.")
    then = "`toolfold trust` lets them start, then " if arguments.project else ""
    print(f"Put your servers into mcp.json; {then}`toolfold doctor` says what works.")
    return 0


def _folding(
    context: InstallContext, files: Files, *, keep: Callable[[ClientFile], bool]
) -> Callable[[ClientFile], None]:
    records = FileRecords(context.directories.state, files)
    folder = Installer(context, files, records)

    def fold(place: ClientFile) -> None:
        plan = folder.plan(place, keep=keep(place))
        print("\n".join(describe_fold(plan, backup=records.path_of(place))), flush=True)
        folder.apply(plan)

    return fold


def _change_hooks(plan: HooksPlan, files: Files) -> None:
    for line in plan.describe():
        print(line, flush=True)
    plan.apply(files)


def _each(places: Sequence[ClientFile], act: Callable[[ClientFile], None], files: Files) -> int:
    """Act on every place; where one fails the others go on, and the status says so."""
    failed = False
    for place in places:
        try:
            act(place)
        except ConfigError as error:
            if len(places) == 1:
                raise
            print(f"toolfold: {place.title}: {error}", file=sys.stderr)
            failed = True
    if files.dry_run:
        _print_diffs(files)
    else:
        write_first_manifest()
    if not (files.dry_run or failed):
        print("Done. Restart your clients to see it.")
    return 1 if failed else 0


def _print_diffs(files: Files) -> None:
    for path, before, after in files.pretended():
        if path.parent.name != "backups":
            print("\n".join(diff(path, before, after)))
    print("This was a dry run: nothing was changed.")


def _chosen(names: Sequence[str], scope: InstallScope, context: InstallContext) -> list[ClientFile]:
    """Return the places that were asked for; of `all`, those that are in use."""
    if not names:
        raise ConfigError(f"Name a client: {_listed(CLIENTS)}, or all. {_overview(scope, context)}")
    if "all" not in names:
        return [find_client_file(client, scope, context) for client in _clients(names)]
    places = [find_client_file(client, scope, context) for client in CLIENTS]
    for place in places:
        if not place.is_in_use:
            print(f"{place.title}: not in use here, skipped")
    found = [place for place in places if place.is_in_use]
    if not found:
        raise ConfigError(f"None of these clients is in use here: {_listed(CLIENTS)}.")
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
