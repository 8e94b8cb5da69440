"""`toolfold import`, `export` and `memory sync`: memory from files and into files."""

import shutil
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

from toolfold.api import forms
from toolfold.entrypoints.commands.memory import ask_memory, print_value
from toolfold.entrypoints.commands.progress import ProgressBar
from toolfold.entrypoints.terminal import absolute
from toolfold.memory.sync.models import Synced
from toolfold.memory.sync.remotes import is_address
from toolfold.memory.transfer.models import Exported, Imported


def import_memory(arguments: Namespace) -> int:
    """Take in a file, or standard input, and say what was in it; 1 if some of it is unusable."""
    if arguments.file != "-":
        return _import(arguments, absolute(arguments.file))
    with tempfile.NamedTemporaryFile(prefix="toolfold-import-") as spooled:
        shutil.copyfileobj(sys.stdin.buffer, spooled)
        spooled.flush()
        return _import(arguments, spooled.name)


def _import(arguments: Namespace, path: str) -> int:
    given = {"path": path, "dry_run": arguments.dry_run}
    unit = "rows" if _is_database(path) else "bytes"
    with ProgressBar(unit) as bar:
        value = ask_memory(arguments, "import_file", given, may_repeat=True, on_progress=bar.show)
    print_value(arguments, value, repr(forms.read(Imported, value)))
    return int(value["fault_count"] > 0)


def export_memory(arguments: Namespace) -> int:
    """Write the memory into a file and say what was written, or print it to standard output."""
    if arguments.file not in (None, "-"):
        value = _export(arguments, absolute(arguments.file))
        return print_value(arguments, value, repr(forms.read(Exported, value)))
    with tempfile.TemporaryDirectory(prefix="toolfold-export-") as directory:
        path = Path(directory) / "memory.jsonl"
        _export(arguments, str(path))
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    return 0


def _export(arguments: Namespace, path: str) -> object:
    given = {"path": path, "format": arguments.format}
    return ask_memory(arguments, "export_file", given, may_repeat=True)


def sync_memory(arguments: Namespace) -> int:
    """Share notes with other machines; 1 if a file of one of them cannot be read."""
    remote = arguments.remote if is_address(arguments.remote) else absolute(arguments.remote)
    key_file = absolute(arguments.key_file) if arguments.key_file else ""
    given = {"remote": remote, "key_file": key_file}
    value = ask_memory(arguments, "sync", given, may_repeat=True)
    return print_value(arguments, value, repr(forms.read(Synced, value))) or int(
        bool(value["unreadable"])
    )


def _is_database(path: str) -> bool:
    """Whether progress is told in rows; what kind of file it is, the daemon says."""
    try:
        with Path(path).open("rb") as file:
            return file.read(6) == b"SQLite"
    except OSError:
        return False
