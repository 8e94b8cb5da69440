"""The routes of the REST API."""

import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import anyio
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from toolfold.entrypoints.rest.answers import (
    INTERNAL,
    JsonAnswer,
    RequestTimedOut,
    failure,
    failure_json,
)
from toolfold.entrypoints.rest.approvals import approval_operations
from toolfold.entrypoints.rest.arguments import read_arguments
from toolfold.entrypoints.rest.disconnect import until_left
from toolfold.entrypoints.rest.execute import question_operation, run_operation
from toolfold.entrypoints.rest.files import file_operations
from toolfold.entrypoints.rest.logins import ServerLogins
from toolfold.entrypoints.rest.memory import memory_operations
from toolfold.entrypoints.rest.metrics import Metrics
from toolfold.entrypoints.rest.observe import Savings, observe_operations
from toolfold.entrypoints.rest.openapi import openapi_of
from toolfold.entrypoints.rest.operations import EVENTS_TYPE, Operation, RestRequest
from toolfold.entrypoints.rest.owner import Examine, owner_operations
from toolfold.entrypoints.rest.page import page_operations
from toolfold.entrypoints.rest.runs import run_operations
from toolfold.entrypoints.rest.sessions import session_operations
from toolfold.entrypoints.rest.state import state_operations
from toolfold.entrypoints.rest.tools import ToolOperations
from toolfold.entrypoints.rest.verbs import verb_operations
from toolfold.errors import ToolfoldError

_log = logging.getLogger(__name__)

FindRequest: TypeAlias = Callable[[Scope], Awaitable[RestRequest]]
"""Finds what serves a request, and for whom."""


def rest_operations(
    metrics: Metrics, logins: ServerLogins, savings: Savings, examine: Examine | None = None
) -> list[Operation]:
    """Return everything that can be asked for over REST."""
    operations = [
        *ToolOperations().operations(),
        run_operation(),
        question_operation(),
        *memory_operations(),
        *verb_operations(),
        *run_operations(),
        *session_operations(),
        *approval_operations(),
        *file_operations(),
        *state_operations(metrics),
        *observe_operations(savings),
        *logins.operations(),
        *owner_operations(examine),
    ]
    return [*operations, *page_operations(openapi_of(operations))]


def rest_routes(
    operations: Sequence[Operation], metrics: Metrics, find_visit: FindRequest, *, time_s: float
) -> list[BaseRoute]:
    """Return their routes; a request that takes longer than `time_s` is given up."""
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        by_path.setdefault(operation.path, {})[operation.method] = operation
    return [
        Route(path, Endpoint(methods, find_visit, metrics, time_s=time_s), methods=[*methods])
        for path, methods in by_path.items()
    ]


class Endpoint:
    """Answers all methods of one path."""

    def __init__(
        self,
        operations: dict[str, Operation],
        find_visit: FindRequest,
        metrics: Metrics,
        *,
        time_s: float,
    ) -> None:
        self._operations = operations
        self._find_visit = find_visit
        self._metrics = metrics
        self._time_s = time_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request. If its client leaves, what was begun for it is cancelled."""
        operation = self._operations.get(scope["method"]) or self._operations["GET"]
        body = (await receive())["body"]  # whole: the guard has read it
        with self._noted(operation) as note:
            response = await self._unless_left(operation, scope, body, receive)
            if response is not None:
                note(response.status_code)
                await response(scope, receive, send)

    @contextmanager
    def _noted(self, operation: Operation) -> Iterator[Callable[[int], None]]:
        began, status = time.perf_counter(), 499  # as others count clients that left

        def note(answered: int) -> None:
            nonlocal status
            status = answered

        self._metrics.in_flight += 1
        try:
            yield note
        finally:
            self._metrics.in_flight -= 1
            taken_s = time.perf_counter() - began
            self._metrics.note(operation.method, operation.path, status, taken_s)

    async def _unless_left(
        self, operation: Operation, scope: Scope, body: bytes, receive: Receive
    ) -> Response | None:
        """Return the answer; None if nobody waits for it any more."""
        response: Response | None = None
        async with until_left(receive):
            response = await self._answer(operation, scope, body)
        return response  # noqa: RET504  # it is None if the context was cancelled

    async def _answer(self, operation: Operation, scope: Scope, body: bytes) -> Response:
        """Return the answer, or what says why there is none."""
        try:
            with anyio.fail_after(self._time_s):
                return await self._answered(operation, scope, body)
        except TimeoutError:
            said = f"This took longer than a request may, {self._time_s:g} s. It was given up."
            return failure(RequestTimedOut(said))
        except ToolfoldError as error:
            return failure(error)
        except Exception:  # noqa: BLE001  # the outer edge
            _log.exception("A request to %s ended with an error.", operation.path)
            return JsonAnswer(failure_json("internal", INTERNAL), 500)

    async def _answered(self, operation: Operation, scope: Scope, body: bytes) -> Response:
        headers = Headers(scope=scope)
        arguments = read_arguments(
            operation,
            scope["path_params"],
            scope["query_string"],
            body,
            headers.get("content-type", ""),
        )
        request = await self._find_visit(scope)
        if operation.stream is not None and EVENTS_TYPE in headers.get("accept", ""):
            return operation.stream(request, arguments)
        answer = await operation.answer(request, arguments)
        return answer if isinstance(answer, Response) else JsonAnswer(answer, operation.status)
