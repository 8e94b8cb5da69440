"""Log in to servers in the browser, for the local user: the answer is the page to visit."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import anyio
from anyio.abc import TaskGroup, TaskStatus

from toolfold.app import App
from toolfold.catalog.login.flow import log_in
from toolfold.catalog.login.logins import Logins
from toolfold.config.servers import ServerConfig
from toolfold.entrypoints.rest.operations import (
    Operation,
    RestRequest,
    closed_object,
    owned,
    whole_object,
)
from toolfold.errors import BadInput, LoginFailed, NotFound
from toolfold.jsontypes import Json, JsonObject

_log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 300.0


class ServerLogins:
    """Has users log in to servers; each login ends by itself, or with the context."""

    def __init__(self) -> None:
        self._tasks: TaskGroup | None = None
        self._open: dict[str, anyio.CancelScope] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Hold what waits for browsers for the length of this context."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            yield
            tasks.cancel_scope.cancel()

    def operations(self) -> list[Operation]:
        """Return all of them."""
        return [
            Operation(
                method="POST",
                path="/servers/{name}/login",
                summary="Start a login to a server; the answer is the page to visit.",
                tag="state",
                takes=closed_object(
                    {"name": {"type": "string", "minLength": 1}}, required=("name",)
                ),
                returns=whole_object({"address": {"type": ["string", "null"]}}),
                answer=self._begin,
                calls_tools=True,
            )
        ]

    async def _begin(self, request: RestRequest, arguments: JsonObject) -> Json:
        """Return the page; null if the server needs no login. Another login there is given up."""
        config, name = owned(request), str(arguments["name"])
        server = next((each for each in config.servers if each.name == name), None)
        if server is None:
            raise NotFound(f"There is no server {name!r} here. `/servers` lists them.")
        if not server.may_log_in:
            raise BadInput(
                f"{name!r} takes no login: it is a program on this machine, or its entry has an "
                "`Authorization` header."
            )
        assert self._tasks is not None  # noqa: S101
        if name in self._open:
            self._open.pop(name).cancel()
        outcome = await self._tasks.start(partial(self._log_in, request.app, server))
        if isinstance(outcome, LoginFailed):
            raise outcome
        address: Json = outcome
        return {"address": address}

    async def _log_in(
        self, app: App, server: ServerConfig, *, task_status: TaskStatus[str | LoginFailed | None]
    ) -> None:
        """Say which page to visit, wait for the login, keep it, and connect with it."""
        is_told = False

        async def visit(url: str) -> None:
            nonlocal is_told
            is_told = True
            task_status.started(url)

        logins = Logins(app.config.directories)
        with anyio.CancelScope() as scope:
            self._open[server.name] = scope
            try:
                granted = await log_in(
                    server, visit=visit, timeout_s=_TIMEOUT_S, earlier=logins.load(server)
                )
                if granted is not None:
                    async with logins.locked(server):
                        logins.save(server, granted)
                    await _reconnect(app, server.name)
                if not is_told:
                    task_status.started(None)
            except LoginFailed as error:
                if not is_told:
                    task_status.started(error)
                _log.warning("%s", error)
            finally:
                if self._open.get(server.name) is scope:
                    del self._open[server.name]


async def _reconnect(app: App, name: str) -> None:
    for upstream in app.shared.upstreams.upstreams:
        if upstream.name == name:
            upstream.restart()
    modules = [each.module for each in app.catalog.statuses() if each.name == name and each.module]
    await app.catalog.learn(modules, fresh=True)
