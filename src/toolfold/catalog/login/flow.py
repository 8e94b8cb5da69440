"""Log in to an HTTP server in the browser (OAuth 2.1, authorization code with PKCE)."""

from typing import Final

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client.auth import OAuthFlowError, OAuthRegistrationError
from mcp.shared.auth import OAuthMetadata
from pydantic import ValidationError

from toolfold.catalog.large import LargeParts, MessageSizes
from toolfold.catalog.login.logins import Login, ask
from toolfold.catalog.login.provider import (
    LoginProvider,
    NotOffered,
    VisitPage,
    insist_on_privacy,
    listening,
)
from toolfold.catalog.transport import http_streams
from toolfold.config.servers import LoginOptions, ServerConfig
from toolfold.errors import LoginFailed, shown

_METADATA_TIMEOUT_S: Final = 15.0
_SIZES: Final = MessageSizes(result_bytes=5_000_000, large_result_bytes=5_000_000)


async def log_in(
    server: ServerConfig, *, visit: VisitPage, timeout_s: float, earlier: Login | None = None
) -> Login | None:
    """Have the user log in; return the login, or None if the server offers none.

    Nothing is stored. What `earlier` was granted, and was found to lack, is asked for again.

    Raises:
        LoginFailed: The server cannot be reached, the login was refused, or took too long.
    """
    insist_on_privacy(server.url)
    metadata = await _fetch_metadata(server.oauth)
    try:
        async with listening(server.oauth.callback_port) as callback:
            provider = LoginProvider(server, callback, visit, metadata, earlier)
            with anyio.move_on_after(timeout_s):
                return await _ask(server, provider)
            raise _too_late(server, timeout_s, was_shown=provider.was_shown)
    except ExceptionGroup as group:
        raise _first(group, LoginFailed, Exception) from group


async def _ask(server: ServerConfig, provider: LoginProvider) -> Login | None:
    """Connect until the server has asked for a login, or has shown that it will not."""
    trouble = await _connect(server, provider)
    if provider.context.current_tokens is None and trouble is None:
        # It lists its tools to anyone, and may want a login for calls.
        provider.is_forced = True
        trouble = await _connect(server, provider)
    if provider.context.current_tokens is not None:
        return provider.login()
    if isinstance(trouble, NotOffered):
        return None
    raise _explained(server, provider, trouble)


async def _connect(server: ServerConfig, provider: LoginProvider) -> BaseException | None:
    """Do what makes a server ask for a login. Return what went wrong, if anything did."""
    try:
        streams = http_streams(server, provider, _ignore, parts=LargeParts(_SIZES))
        async with Client(streams, cache=None) as client:
            await client.list_tools()
    except (MCPError, ValidationError, OSError, httpx2.HTTPError, OAuthFlowError) as error:
        return error
    except ExceptionGroup as group:
        return _first(group, LoginFailed, OAuthFlowError, httpx2.HTTPError, Exception)
    return None


async def _ignore(response: httpx2.Response) -> None:
    """See nothing in a response: the flow judges it."""


async def _fetch_metadata(options: LoginOptions) -> OAuthMetadata | None:
    """Read the description that the user's entry names, if it names one."""
    if not options.metadata_url:
        return None
    insist_on_privacy(options.metadata_url)
    try:
        request = httpx2.Request("GET", options.metadata_url)
        response = await ask(request, timeout_s=_METADATA_TIMEOUT_S)
        response.raise_for_status()
        return OAuthMetadata.model_validate_json(response.content)
    except (httpx2.HTTPError, ValidationError) as error:
        raise LoginFailed(
            "`authServerMetadataUrl` does not lead to the description of an authorization server: "
            f"{shown(str(error).splitlines()[0])}"
        ) from error


def _too_late(server: ServerConfig, timeout_s: float, *, was_shown: bool) -> LoginFailed:
    """Say who has been waited for in vain."""
    if was_shown:
        return LoginFailed(
            f"No login to {server.name!r} within {timeout_s:g} s. "
            "Run it again, and open the page in a browser on this machine."
        )
    return LoginFailed(
        f"{server.name!r} did not answer within {timeout_s:g} s, so the login failed."
    )


def _explained(
    server: ServerConfig, provider: LoginProvider, trouble: BaseException | None
) -> LoginFailed:
    """Say what went wrong, and what the user can do about it."""
    if isinstance(trouble, LoginFailed):
        return trouble
    if not isinstance(trouble, OAuthFlowError):
        reason = shown(str(trouble) or type(trouble).__name__)
        return LoginFailed(f"{server.name!r} cannot be reached to log in: {reason}")
    known = provider.context.oauth_metadata
    if known is None and provider.context.protected_resource_metadata is None:
        return LoginFailed(
            f"{server.name!r} refuses us, and offers no way to log in. It may want a token: put "
            f"that under `headers` in {server.source}."
        )
    # "Invalid token response: …" goes on to quote that response, secrets and all.
    words = str(trouble)
    reason = shown(words.partition(":")[0] if words.startswith("Invalid ") else words)
    if isinstance(trouble, OAuthRegistrationError) and known and not known.registration_endpoint:
        reason = (
            f"{known.issuer} does not register programs by itself. Register one there, and put its "
            f"`clientId` under `oauth` in {server.source}"
        )
    return LoginFailed(f"Logging in to {server.name!r} failed: {reason}.")


def _first(group: BaseExceptionGroup[BaseException], *kinds: type[BaseException]) -> BaseException:
    """Return the first error of the first kind that a group holds any of."""
    for kind in kinds:
        found: BaseException | None = group.subgroup(kind)
        while isinstance(found, BaseExceptionGroup):
            found = found.exceptions[0]
        if found is not None:
            return found
    return group
