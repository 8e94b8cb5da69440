"""Results that are too large to be shown or handed over: files, of which the oldest go first."""

import errno
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from toolfold.workspace.workspace import Workspace

FOLDER: Final = "results"
_T = TypeVar("_T")


def save_result(workspace: Workspace, name: str, content: Iterable[bytes]) -> str:
    """Save a result whole and return its path. When room is needed, the oldest results go.

    Raises:
        OSError: There is no room, although no other result is left.
    """
    path = f"{FOLDER}/{name}"
    with suppress(FileExistsError):
        _with_room(workspace, partial(workspace.mkdir, FOLDER))
    draft = _with_room(workspace, partial(workspace.create, path))
    try:
        for chunk in content:
            _with_room(workspace, partial(draft.write, chunk))
        draft.finish()
    except BaseException:
        draft.discard()
        raise
    return path


def _with_room(workspace: Workspace, change: Callable[[], _T]) -> _T:
    """Make a change, removing old results as long as there is no room for it."""
    while True:
        try:
            return change()
        except OSError as error:
            if error.errno != errno.ENOSPC or not _remove_oldest(workspace):
                raise


def _remove_oldest(workspace: Workspace) -> bool:
    """Remove the oldest result; False if there is none."""
    try:
        found = workspace.entries(FOLDER)
    except OSError:
        return False
    files = [(status.changed_at, name) for name, status in found if not status.is_dir]
    if not files:
        return False
    with suppress(FileNotFoundError):  # another process was faster
        workspace.unlink(f"{FOLDER}/{min(files)[1]}")
    return True
