"""The memory of every namespace, opened when it is first needed."""

import inspect
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import anyio

from toolfold.errors import BadInput, NotFound, StoreError
from toolfold.jsontypes import Json
from toolfold.memory.background import in_background
from toolfold.memory.verbs import VERBS, Services, Verb

_log = logging.getLogger(__name__)

Progress: TypeAlias = Callable[[int, int, str], None]
"""Told how much is done, of how much, and what it is."""

OpenServices: TypeAlias = Callable[[], AbstractAsyncContextManager[Callable[[str], Services]]]
"""Opens the store, for the length of a context; yields what makes the services of a namespace."""


class Memories:
    """Answers every verb in every namespace.

    A store that cannot be opened is the trouble of whoever asks for it: they are told why, and the
    next one tries again.
    """

    def __init__(self, open_services: OpenServices) -> None:
        self._open = open_services
        self._make: Callable[[str], Services] | None = None
        self._services: dict[str, Services] = {}
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
        namespace: str,
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
        answer = await self._bound(namespace, path, arguments, progress)
        if inspect.isasyncgen(answer):
            return tuple([page async for page in answer])
        return await answer

    async def pages(
        self, namespace: str, path: str, arguments: Mapping[str, Json]
    ) -> AsyncIterator[Any]:
        """Answer a verb page by page; one whose answer is whole gives one page.

        Raises:
            ToolfoldError: As `call`.
        """
        answer = await self._bound(namespace, path, arguments, None)
        if inspect.isasyncgen(answer):
            async for page in answer:
                yield page
        else:
            yield await answer

    async def services(self, namespace: str) -> Services:
        """Return what serves a namespace.

        Raises:
            StoreError: The store cannot be opened.
        """
        make = self._make or await self._opened()
        if namespace not in self._services:
            self._services[namespace] = make(namespace)
        return self._services[namespace]

    async def _bound(
        self, namespace: str, path: str, arguments: Mapping[str, Json], progress: Progress | None
    ) -> Any:
        verb = VERBS.get(path)
        if verb is None:
            raise NotFound(f"Memory has no verb {path!r}.")
        method = verb.of(await self.services(namespace))
        signature = inspect.signature(method)
        extra = {"progress": progress} if "progress" in signature.parameters and progress else {}
        try:
            signature.bind(**arguments)
        except TypeError as error:
            raise BadInput(f"{_call(verb, signature)}: {error}.") from error
        return method(**arguments, **extra)

    async def _opened(self) -> Callable[[str], Services]:
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


def _call(verb: Verb, signature: inspect.Signature) -> str:
    names = [name for name in signature.parameters if name != "progress"]
    return f"{verb.path} takes {', '.join(names) or 'nothing'}"
