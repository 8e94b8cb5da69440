"""Files that guest code is writing: others see them when they are finished."""

import logging
import threading
from typing import Final

from toolfold.sandbox.sandbox import FileDraft, GuestFiles
from toolfold.sandbox.trees import named

_log = logging.getLogger(__name__)

_MAX: Final = 32


class Drafts:
    """What one session has begun to write as a whole.

    A file is finished when the code closes it, when it looks at it again, or when its program ends,
    whichever way. What is written to it from then on goes into the file itself.
    """

    def __init__(self, files: GuestFiles) -> None:
        self._files = files
        self._drafts: dict[str, FileDraft] = {}
        self._lock = threading.RLock()  # a program that was stopped may have a thread at work

    @property
    def is_writing(self) -> bool:
        """Whether anything has been begun and not finished."""
        return bool(self._drafts)

    def settled(self, *paths: str) -> GuestFiles:
        """Return the files, once what is being written at these paths, or below, is finished."""
        with self._lock:
            for draft in list(self._drafts):
                if any(_is_at(path, draft) for path in paths):
                    self.finish(draft)
        return self._files

    def begin(self, path: str) -> None:
        """Begin a file anew."""
        with self._lock:
            if earlier := self._drafts.pop(path, None):
                earlier.discard()
            while len(self._drafts) >= _MAX:
                self.finish(next(iter(self._drafts)))
            self._drafts[path] = self._files.create(path)

    def write(self, path: str, content: bytes, offset: int | None = None) -> None:
        """Write to a file, begun or there."""
        with self._lock, named(path):
            if draft := self._drafts.get(path):
                draft.write(content, offset)
            else:
                self._files.write(path, content, offset)

    def truncate(self, path: str, size: int) -> None:
        """Give a file another length, begun or there."""
        with self._lock, named(path):
            if draft := self._drafts.get(path):
                draft.truncate(size)
            else:
                self._files.truncate(path, size)

    def finish(self, path: str) -> None:
        """Put a file in its place, if it has only been begun."""
        with self._lock, named(path):
            if draft := self._drafts.pop(path, None):
                draft.finish()

    def finish_all(self) -> None:
        """Put all of them in their places."""
        with self._lock:
            for path in list(self._drafts):
                try:
                    self.finish(path)
                except OSError as error:  # its directory may be gone
                    _log.info("A file of guest code was not kept: %s", error)


def _is_at(path: str, draft: str) -> bool:
    return draft == path or draft.startswith(f"{path.rstrip('/')}/")
