"""`toolfold uninstall`: give clients their servers back, and say what remains or delete it."""

from argparse import Namespace

from toolfold.config.config import current_directory, environment
from toolfold.config.paths import Directories
from toolfold.entrypoints.commands.daemon import stop
from toolfold.entrypoints.install import commands
from toolfold.entrypoints.install.clients import InstallContext
from toolfold.entrypoints.install.drift import installed_files
from toolfold.entrypoints.install.files import Files
from toolfold.entrypoints.install.records import FileRecords
from toolfold.entrypoints.install.remains import purge, remains
from toolfold.entrypoints.parser import confirm
from toolfold.entrypoints.screen import size
from toolfold.errors import ConfigError


def uninstall(arguments: Namespace) -> int:
    """Take toolfold out of clients; with `--purge`, delete everything that it has stored."""
    status = commands.uninstall(arguments)
    if arguments.dry_run or status:
        return status
    directories = Directories.from_environ(environment())
    found = remains(directories)
    if not found:
        return 0
    if not arguments.purge:
        print("Notes, runs and settings remain; `toolfold uninstall all --purge` deletes them:")
    for each in found:
        print(f"  {size(each.size_bytes):>8}  {each.path}")
    if not arguments.purge:
        return 0
    if clients := _clients(directories):
        raise ConfigError(
            f"Nothing was deleted: toolfold is still installed in {', '.join(clients)}. "
            "Uninstall it there first: `toolfold uninstall all`."
        )
    if not confirm(
        "Delete all notes, runs and settings? This cannot be undone.", yes=arguments.yes
    ):
        print("Nothing was deleted.")
        return 1
    stop(Namespace(now=True))
    purge(found)
    print("Deleted.")
    return 0


def _clients(directories: Directories) -> list[str]:
    """Return the clients that have toolfold still."""
    around = InstallContext(directories=directories, environ=environment(), cwd=current_directory())
    places = installed_files(around, FileRecords(directories.state, Files()))
    return sorted({place.client for place, _ in places})
