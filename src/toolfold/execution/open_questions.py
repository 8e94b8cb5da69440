"""Questions that wait for a reply which comes by another way than they were put."""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio

from toolfold.catalog.questions import Question, Reply
from toolfold.errors import NotFound, QuestionExpired


@dataclass(slots=True, eq=False)
class _Open:
    replied: anyio.Event = field(default_factory=anyio.Event)
    reply: Reply | None = None


class OpenQuestions:
    """Those of one process, each under a name that nobody can guess."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}

    async def put(
        self, question: Question, show: Callable[[str], Awaitable[None]], *, limit_s: float
    ) -> Reply:
        """Have a question shown under its name, and wait for the reply.

        Raises:
            QuestionExpired: None came in time.
        """
        name, waiting = secrets.token_hex(8), _Open()
        self._open[name] = waiting
        try:
            await show(name)
            with anyio.move_on_after(limit_s):
                await waiting.replied.wait()
        finally:
            del self._open[name]
        if waiting.reply is None:
            raise QuestionExpired(
                f"{question.asker} asked the user for input and got no reply in {limit_s:g} s."
            )
        return waiting.reply

    def reply(self, name: str, reply: Reply) -> None:
        """Give the reply to a question.

        Raises:
            NotFound: It does not wait any more, or never did.
        """
        waiting = self._open.get(name)
        if waiting is None or waiting.reply is not None:
            raise NotFound(f"No question {name[:40]!r} waits for a reply.")
        waiting.reply = reply
        waiting.replied.set()
