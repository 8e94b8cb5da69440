"""Filing: answers what a guest asks of files. What it asks is hostile."""

import errno
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from toolfold.sandbox.cpython.frames import SLICE_BYTES, FrameBreach
from toolfold.sandbox.drafts import Drafts
from toolfold.sandbox.sandbox import FileStatus, GuestFiles

_MAX: Final = 1 << 53
_AT_END: Final = -1


class FileRequest(NamedTuple):
    """What a guest asks."""

    what: str
    path: str
    target: str
    offset: int
    size: int
    content: bytes


class FileService:
    """Answers in a thread, one question of a session after the other."""

    def __init__(self, files: GuestFiles) -> None:
        self._drafts = drafts = Drafts(files)
        at = drafts.settled
        self._verbs: dict[str, Callable[[FileRequest], Any]] = {
            "stat": lambda ask: _told(at(ask.path).stat(ask.path)),
            "entries": lambda ask: [
                (name, *_told(status)) for name, status in at(ask.path).entries(ask.path)
            ],
            "read": lambda ask: at(ask.path).read(ask.path, ask.offset, ask.size),
            "make": lambda ask: at(ask.path).make(ask.path),
            "mkdir": lambda ask: at(ask.path).mkdir(ask.path),
            "unlink": lambda ask: at(ask.path).unlink(ask.path),
            "rmdir": lambda ask: at(ask.path).rmdir(ask.path),
            "rename": lambda ask: at(ask.path, ask.target).rename(ask.path, ask.target),
            "begin": lambda ask: drafts.begin(ask.path),
            "finish": lambda ask: drafts.finish(ask.path),
            "truncate": lambda ask: drafts.truncate(ask.path, ask.offset),
            "write": lambda ask: drafts.write(
                ask.path, ask.content, None if ask.offset < 0 else ask.offset
            ),
        }

    def check(self, question: FileRequest) -> None:
        """Make sure that a question can be asked at all.

        Raises:
            FrameBreach: It cannot.
        """
        lowest = _AT_END if question.what == "write" else 0
        is_sound = lowest <= question.offset < _MAX and 0 <= question.size <= SLICE_BYTES
        if question.what not in self._verbs or not is_sound:
            raise FrameBreach("a question of another shape")

    def answer(self, question: FileRequest) -> tuple[int, Any]:
        """Return 0 and an answer, or the number of an error and words."""
        try:
            return 0, self._verbs[question.what](question)
        except OSError as error:
            return error.errno or errno.EIO, error.strerror or str(error)

    @property
    def is_writing(self) -> bool:
        """Whether there is anything to finish."""
        return self._drafts.is_writing

    def finish(self) -> None:
        """Finish what the program was writing."""
        self._drafts.finish_all()


def _told(status: FileStatus) -> tuple[bool, int, float]:
    return status.is_dir, status.size, status.changed_at
