"""A module of our own, which guest code imports as it imports servers."""

import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from toolfold.catalog.answers import Answer
from toolfold.catalog.tool import ListedTool
from toolfold.errors import NotFound, ToolFailed, ToolfoldError
from toolfold.jsontypes import JsonObject, plain

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """Tools that this process answers by itself."""

    name: str
    """The module; no server can have it."""

    tools: tuple[ListedTool, ...]
    serve: Callable[..., Awaitable[Any]]
    """Answers the tool of a name as its service does, or raises a `ToolfoldError`."""

    form: Callable[[Any], Any] = lambda value: value
    """Returns such an answer as JSON and named tuples."""

    show: Callable[[Any], str]
    """Returns that as text, for clients that call the tool by itself."""

    async def text(self, name: str, arguments: JsonObject) -> str:
        """Answer one call with what is shown of the answer; raises as the service does."""
        return self.show(self.form(await self.serve(name, arguments)))

    async def call(self, name: str, arguments: JsonObject) -> Answer:
        """Answer one call.

        Raises:
            ToolfoldError: There is no answer; the message says why.
        """
        try:
            value = self.form(await self.serve(name, arguments))
        except NotFound as error:  # which would say that there is no such tool
            raise ToolFailed(str(error)) from error
        except ToolfoldError:
            raise
        except Exception as error:
            _log.exception("%s.%s ended with an error.", self.name, name)
            raise ToolFailed(f"{self.name}.{name} failed; see `toolfold logs`.") from error
        return Answer(value, len(json.dumps(plain(value))))
