"""What a server asks the user, what the user replies, and who can be asked."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal

from toolfold.errors import QuestionRefused
from toolfold.jsontypes import JsonObject

_SHOWN_CHARS: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A form to fill in, or a page to open, that somebody wants from the user."""

    asker: str
    """Who asks, as the user knows it: a server of the configuration."""
    message: str
    schema: JsonObject | None = None
    """Of the form; None when `url` is to be opened."""
    url: str | None = None
    elicitation_id: str | None = None
    """The server's own name for a page to open, where its protocol has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the user did, with the form as filled in."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, str | int | float | bool | list[str] | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Elicitor:
    """Puts questions to one user and waits."""

    user: object
    """Equal to that of another only if both reach the same person."""
    put: Callable[[Question], Awaitable[Reply]]

    async def __call__(self, question: Question) -> Reply:
        """Return what the user replied.

        Raises:
            QuestionRefused: It cannot be put; the call that needs the answer fails.
            QuestionExpired: Nobody replied in time; the run ends.
        """
        return await self.put(question)


def unanswerable(question: Question, why: str) -> QuestionRefused:
    """Say what was asked, and why it cannot be put to the user."""
    asked = question.message[:_SHOWN_CHARS]
    if question.url is not None:
        asked += f" ({question.url[:_SHOWN_CHARS]})"
    return QuestionRefused(
        f"{question.asker} asks the user for input: {asked!r}, and {why}. "
        "Give the tool all it needs as arguments."
    )


async def refuse(question: Question) -> Reply:
    """Stand in for the `Elicitor` of those who have no user to ask.

    Raises:
        QuestionRefused: Always.
    """
    raise unanswerable(question, "this client cannot put questions to its user")
