"""The memory of every namespace, opened when it is first needed."""

import inspect
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

import anyio

from toolfold.config.settings import MemorySettings
from toolfold.errors import BadInput, NotFound, StoreError
from toolfold.jsontypes import Json
from toolfold.memory.store import in_background
from toolfold.memory.verbs import VERBS, Services, Verb

_log = logging.getLogger(__name__)

_MAX_PLACES: Final = 1_000

Progress: TypeAlias = Callable[[int, int, str], None]
"""Told how much is done, of how much, and what it is."""


class RequestContext(NamedTuple):
    """Where a question comes from."""

    namespace: str
    settings: MemorySettings = MemorySettings()
    is_guest: bool = False
    """Whether it speaks for a model: guest code reads only files that the user allows."""

    formerly: str = ""
    """The namespace that its notes were in before, if any; they move in with the first question."""


_CHECKED: Final = RequestContext("health")
"""Nothing is kept there."""

MakeServices: TypeAlias = Callable[[RequestContext], Services]
"""Makes what serves a place."""

OpenServices: TypeAlias = Callable[[], AbstractAsyncContextManager[MakeServices]]
"""Opens the store, for the length of a context."""


class Memories:
    """Answers every verb in every namespace.

    A store that cannot be opened is the trouble of whoever asks for it: they are told why, and the
    next one tries again.
    """

    def __init__(self, open_services: OpenServices) -> None:
        self._open = open_services
        self._make: MakeServices | None = None
        self._services: dict[RequestContext, Services] = {}
        self._fault = ""
        self._wanted = anyio.Event()
        self._settled = anyio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Own the store for the length of this context."""
        async with in_background(self._own):
            yield

    def want(self) -> None:
        """Open the store soon: notes may wait there for their vectors."""
        self._wanted.set()

    async def call(
        self,
        context: RequestContext,
        path: str,
        arguments: Mapping[str, Json],
        *,
        progress: Progress | None = None,
    ) -> Any:
        """Answer a verb. What comes in pages comes as a tuple of them.

        Raises:
            NotFound: There is no such verb, or the note is not there.
            BadInput: An argument cannot be used; nothing was changed.
            StoreError: The store cannot be opened, or does not answer.
        """
        bound = _bind(path, arguments, progress, is_guest=context.is_guest)
        answer = bound(await self.services(context))
        if inspect.isasyncgen(answer):
            return tuple([page async for page in answer])
        return await answer

    async def pages(
        self, context: RequestContext, path: str, arguments: Mapping[str, Json]
    ) -> AsyncGenerator[Any, None]:
        """Answer a verb page by page; one whose answer is whole gives one page.

        Raises:
            ToolfoldError: As `call`.
        """
        bound = _bind(path, arguments, None, is_guest=context.is_guest)
        answer = bound(await self.services(context))
        if inspect.isasyncgen(answer):
            async for page in answer:
                yield page
        else:
            yield await answer

    async def services(self, context: RequestContext) -> Services:
        """Return what serves a place.

        Raises:
            StoreError: The store cannot be opened.
        """
        make = self._make or await self._opened()
        if context not in self._services:
            while len(self._services) >= _MAX_PLACES:
                del self._services[next(iter(self._services))]
            services = make(context)
            if context.formerly:
                await services.transfer.move_in(context.formerly)
            self._services[context] = services
        return self._services[context]

    async def check(self) -> None:
        """See that the store answers, unless nobody has needed it yet.

        Raises:
            StoreError: It does not.
        """
        if self._make is None and not self._fault and not self._wanted.is_set():
            return
        await (await self.services(_CHECKED)).notes.health()

    async def _opened(self) -> MakeServices:
        if self._settled.is_set():  # else somebody waits for it already
            self._settled = anyio.Event()
        self._wanted.set()
        await self._settled.wait()
        if self._make is None:
            raise StoreError(self._fault)
        return self._make

    async def _own(self) -> None:
        while True:
            await self._wanted.wait()
            try:
                async with self._open() as make:
                    self._make = make
                    self._settled.set()
                    await anyio.sleep_forever()
            except StoreError as error:
                _log.warning("%s", error)
                self._fault = str(error)
            finally:
                self._make = None
                self._services.clear()
                self._wanted = anyio.Event()
                self._settled.set()


def _bind(
    path: str, arguments: Mapping[str, Json], progress: Progress | None, *, is_guest: bool
) -> Callable[[Services], Any]:
    """Return what begins to answer a verb."""
    verb = VERBS.get(path)
    if verb is None:
        raise NotFound(f"Memory has no verb {path!r}.")
    if is_guest and verb.is_for_users:
        raise NotFound(f"{path} is for people: `toolfold memory {verb.name}`.")
    taken = _taken(verb)
    try:
        taken.signature.bind(**arguments)
    except TypeError as error:
        names = ", ".join(taken.signature.parameters) or "nothing"
        raise BadInput(f"{verb.path} takes {names}: {error}.") from error
    told = {"progress": progress} if taken.tells_progress and progress else {}
    return lambda services: verb.of(services)(**arguments, **told)


class _BoundVerb(NamedTuple):
    """What a verb takes from outside."""

    signature: inspect.Signature
    tells_progress: bool


@cache
def _taken(verb: Verb) -> _BoundVerb:
    _itself, *parameters = inspect.signature(verb.method).parameters.values()
    given = [each for each in parameters if each.name != "progress"]
    return _BoundVerb(inspect.Signature(given), tells_progress=len(given) < len(parameters))
