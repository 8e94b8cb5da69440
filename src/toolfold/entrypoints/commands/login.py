"""`toolfold login` and `toolfold logout`: what a server lets us do on the user's behalf."""

import difflib
import logging
import sys
import webbrowser
from argparse import Namespace
from dataclasses import replace

import anyio
import httpx2

from toolfold.app import running_app
from toolfold.catalog.login.flow import log_in
from toolfold.catalog.login.logins import Login, Logins, ask, client_request, login_state
from toolfold.catalog.login.provider import is_private
from toolfold.catalog.secrets import Secrets
from toolfold.config.config import Config, environment
from toolfold.config.servers import ServerConfig, ServerFault, references_in
from toolfold.entrypoints.commands.options import config_of
from toolfold.entrypoints.screen import tell
from toolfold.errors import ConfigError, NotFound, count
from toolfold.storage.secrets import SecretStore

_REVOCATION_TIMEOUT_S = 10.0


def login(arguments: Namespace) -> int:
    """Log in to a server in the browser, and show that it works."""
    config = config_of(arguments)
    server = _server(config, arguments.server)
    _insist_on_use(server)
    # The flow words its troubles itself, and the SDK's account of them may hold secrets.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    return anyio.run(_login, config, server, arguments)


def logout(arguments: Namespace) -> int:
    """Forget the login of a server, and tell the server so where it can be told."""
    config = config_of(arguments)
    server = _server(config, arguments.server)
    return anyio.run(_logout, Logins(config.directories), server, arguments)


async def _login(config: Config, server: ServerConfig, arguments: Namespace) -> int:
    async def visit(url: str) -> None:
        file = sys.stderr if arguments.json else sys.stdout
        print(f"Log in to {server.name!r} on this page:\n\n  {url}\n", file=file, flush=True)
        if not arguments.no_browser:
            await anyio.to_thread.run_sync(webbrowser.open, url, abandon_on_cancel=True)

    logins = Logins(config.directories)
    secrets = Secrets(SecretStore(config.directories.data), environment())
    filled = await secrets.filled(server, path=config.search_path, home=config.home)
    earlier, timeout_s = logins.load(server), arguments.timeout
    granted = await log_in(filled.config, visit=visit, timeout_s=timeout_s, earlier=earlier)
    if granted is None:
        sentence = f"{server.name!r} needs no login: it answers without one, and offers none."
        tell(arguments, sentence, server=server.name, logged_in=False)
        return 0
    async with logins.locked(server):
        logins.save(server, granted)
    return await _prove(config, server, arguments)


async def _prove(config: Config, server: ServerConfig, arguments: Namespace) -> int:
    """Use the login as any other process would."""
    async with running_app(replace(config, servers=(server,), faults=())) as app:
        await app.catalog.learn(fresh=True)
        [status] = app.catalog.statuses()
    if status.fault:
        print(
            f"toolfold: You are logged in, but {server.name!r} cannot be used: {status.fault}",
            file=sys.stderr,
        )
        return 1
    state = login_state(server, config.directories)
    tools = count(status.tools or 0, "tool")
    sentence = f"{server.name!r}: {state}. It lists {tools} as `import {status.module}`."
    tell(arguments, sentence, server=server.name, logged_in=True)
    return 0


async def _logout(logins: Logins, server: ServerConfig, arguments: Namespace) -> int:
    async with logins.locked(server):
        granted = logins.load(server)
        logins.remove(server)
    if granted is None:
        sentence = f"You were not logged in to {server.name!r}."
        tell(arguments, sentence, server=server.name, logged_out=False)
        return 0
    sentence = f"Logged out of {server.name!r}; {await _revoke(granted)}."
    tell(arguments, sentence, server=server.name, logged_out=True)
    return 0


async def _revoke(granted: Login) -> str:
    """Have the authorization server forget the login too (RFC 7009); say what came of it."""
    endpoint = granted.revocation_endpoint
    if endpoint is None:
        return "the server offers no revocation; its login expires by itself"
    if not is_private(endpoint):
        return "the server was not notified: the connection is not encrypted"
    tokens = [("refresh_token", granted.refresh_token), ("access_token", granted.access_token)]
    forms = [{"token": token, "token_type_hint": kind} for kind, token in tokens if token]
    try:
        for form in forms:
            request = client_request(granted, endpoint, form)
            (await ask(request, timeout_s=_REVOCATION_TIMEOUT_S)).raise_for_status()
    except httpx2.HTTPError:
        return "the server could not be notified; its login expires by itself"
    return "the server has revoked the login, too"


def _server(config: Config, name: str) -> ServerConfig:
    found = next((server for server in config.servers if server.name == name), None)
    if found is None:
        raise _not_found(config, name)
    return found


def _insist_on_use(server: ServerConfig) -> None:
    """Refuse to log in where the login would not be used."""
    name = server.name
    if server.is_program:
        raise ConfigError(
            f"{name!r} is a program on this machine (stdio), which needs no login. "
            "Its credentials belong under `env` in its entry."
        )
    if references_in(server.url):
        raise ConfigError(
            f"The `url` of {name!r} holds a secret, and a login is kept by its URL. Write the URL "
            f"itself in {server.source} to log in."
        )
    if not server.may_log_in:
        raise ConfigError(
            f"{name!r} has an `Authorization` header in its entry, which is used instead of a "
            f"login. Take it out of {server.source} to log in."
        )


def _not_found(config: Config, name: str) -> NotFound:
    for fault in config.faults:
        if isinstance(fault, ServerFault) and fault.name == name:
            return NotFound(f"The server {name!r} cannot be used: {fault.reason}")
    names = [server.name for server in config.servers]
    nearest = difflib.get_close_matches(name, names, n=1)
    if nearest:
        return NotFound(f"No server is named {name!r}. Did you mean {nearest[0]!r}?")
    return NotFound(f"No server is named {name!r}. There are: {', '.join(names) or 'none'}.")
