"""What of toolfold remains on this machine after it was uninstalled, and how to remove that."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import NamedTuple

from toolfold.config.paths import Directories
from toolfold.errors import StoreError
from toolfold.storage.backup import left_by_restores


class Remains(NamedTuple):
    """A directory of ours, and how much is in it."""

    path: Path
    size_bytes: int


def remains(directories: Directories) -> list[Remains]:
    """Return the directories of ours that exist; none that is within another.

    What restores have kept aside is among them: it holds as many secrets as what is in use.
    """
    own = [path for path in map(Path, astuple(directories)) if path.is_dir()]
    aside = [*left_by_restores(directories.config), *left_by_restores(directories.data)]
    found = sorted({*own, *aside})
    tops = [path for path in found if not any(other in path.parents for other in found)]
    return [Remains(path, sum(_sizes(path))) for path in tops]


def purge(found: list[Remains]) -> None:
    """Delete these directories with everything in them.

    Raises:
        StoreError: One of them cannot be deleted; those before it are gone.
    """
    for path, _ in found:
        try:
            shutil.rmtree(path)
        except OSError as error:
            raise StoreError(f"Cannot delete {error.filename}: {error.strerror}.") from error


def _sizes(directory: Path) -> Iterator[int]:
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                yield os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118
            except OSError:
                continue  # gone meanwhile
