"""`toolfold uninstall`: give clients their servers back, and say what remains or delete it."""

from argparse import Namespace
from typing import Final

from toolfold.config.config import current_directory, environment
from toolfold.config.paths import Directories
from toolfold.entrypoints.commands.daemon import end_daemon, find_daemon
from toolfold.entrypoints.install import commands
from toolfold.entrypoints.install.clients import InstallContext
from toolfold.entrypoints.install.commands import InstallReport
from toolfold.entrypoints.install.drift import installed_files
from toolfold.entrypoints.install.files import Files
from toolfold.entrypoints.install.records import FileRecords
from toolfold.entrypoints.install.remains import Remains, purge, remains
from toolfold.entrypoints.parser import check_terminal, confirm
from toolfold.entrypoints.screen import size
from toolfold.errors import ConfigError

_QUESTION: Final = "Delete all notes, runs and settings? This cannot be undone."


def uninstall(arguments: Namespace) -> int:
    """Take toolfold out of clients; with `--purge`, delete everything that it has stored."""
    if arguments.purge and not (arguments.dry_run or arguments.yes):
        check_terminal(_QUESTION)
    report = commands.unfold(arguments)
    status = _finish(arguments, report)
    report.finish()
    return status


def _finish(arguments: Namespace, report: InstallReport) -> int:
    """Say what remains, or delete it; return the exit status."""
    directories = Directories.from_environ(environment())
    found = remains(directories)
    report.facts["remains"] = [{"path": str(path), "bytes": size} for path, size in found]
    report.facts["purged"] = False
    if report.failed or not found or (arguments.dry_run and not arguments.purge):
        return report.status
    _list(found, arguments, report)
    if not arguments.purge and find_daemon().is_locked():
        report.say("The daemon is running; `toolfold stop` ends it.")
    if arguments.dry_run or not arguments.purge:
        return 0
    if clients := _clients(directories):
        raise ConfigError(
            f"Nothing was deleted: toolfold is still installed in {', '.join(clients)}. "
            "Uninstall it there first: `toolfold uninstall all`."
        )
    if not confirm(_QUESTION, yes=arguments.yes):
        report.say("Nothing was deleted.")
        return 1
    if end_daemon(now=True):
        report.say("The daemon has ended.")
    purge(found)
    report.say("Deleted.")
    report.facts |= {"purged": True, "remains": []}
    return 0


def _list(found: list[Remains], arguments: Namespace, report: InstallReport) -> None:
    if not arguments.purge:
        report.say(
            "Notes, runs and settings remain; `toolfold uninstall all --purge` deletes them:"
        )
    elif arguments.dry_run:
        report.say("All notes, runs and settings would be deleted:")
    for each in found:
        report.say(f"  {size(each.size_bytes):>8}  {each.path}")


def _clients(directories: Directories) -> list[str]:
    """Return the clients that have toolfold still."""
    around = InstallContext(directories=directories, environ=environment(), cwd=current_directory())
    places = installed_files(around, FileRecords(directories.state, Files()))
    return sorted({place.client for place, _ in places})
