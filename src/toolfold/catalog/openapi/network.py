"""Requests that reach only what they may: public addresses, and those that the user named."""

import socket
from collections.abc import Awaitable, Callable, Collection
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import urlsplit

import anyio
import httpx2

from toolfold.errors import ToolFailed

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Returns the addresses of a host."""

_PORTS: Final = {"http": 80, "https": 443}
_NAT64: Final = IPv6Network("64:ff9b::/96")


class AddressRefused(ToolFailed):
    """A request would have gone to an address of this machine or its network."""


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends requests to public addresses, and to hosts that the user named.

    The name is looked up once, judged, and the connection made to that very address: an answer of
    the name server that changes in between changes nothing.
    """

    def __init__(
        self, named: Collection[tuple[str, int]], *, resolve: Resolve | None = None
    ) -> None:
        self._named = frozenset(named)
        self._resolve = resolve or _look_up
        # One for each host: connections are told apart by address, and one address may have
        # several hosts, of which each has a certificate of its own.
        self._transports: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request.

        Raises:
            AddressRefused: Its host has an address that may not be reached.
        """
        host, port = host_and_port(str(request.url))
        addresses = await self._addresses(host, port)
        transport = self._transports.setdefault(host, httpx2.AsyncHTTPTransport())
        fault: Exception | None = None
        for address in addresses:
            try:
                return await transport.handle_async_request(_pinned(request, host, address))
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                fault = error  # nothing was sent
        raise fault or httpx2.ConnectError(f"{host} has no address.")

    async def aclose(self) -> None:
        """Close every connection."""
        for transport in self._transports.values():
            await transport.aclose()

    async def _addresses(self, host: str, port: int) -> list[str]:
        try:
            found = await self._resolve(host, port)
        except OSError as error:
            raise httpx2.ConnectError(f"{host} cannot be found: {error.strerror}") from error
        if (host, port) not in self._named:
            for each in found:
                if not is_public(each):
                    raise AddressRefused(
                        f"{host} is at {each}, a private address, so nothing was sent. To allow "
                        f"it, add it with --url http://{host}:{port}, or write that as `url` into "
                        "its entry."
                    )
        return found


def host_and_port(url: str) -> tuple[str, int]:
    """Return where a URL leads, in one spelling."""
    parts = urlsplit(url)
    return (parts.hostname or "").rstrip("."), parts.port or _PORTS.get(parts.scheme, 0)


def origin_of(url: str) -> tuple[str, str, int]:
    """Return what two URLs of one origin have in common."""
    return urlsplit(url).scheme, *host_and_port(url)


def is_public(address: str) -> bool:
    """Whether an address is one of the public network, also under what is wrapped in it."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return all(each.is_global and not each.is_multicast for each in (ip, *_wrapped(ip)))


def is_private(host: str) -> bool:
    """Whether a host is sure to be this machine or its network, as far as its name tells."""
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return not is_public(host)


def _wrapped(ip: IPv4Address | IPv6Address) -> list[IPv4Address]:
    if isinstance(ip, IPv4Address):
        return []
    found = [ip.ipv4_mapped, ip.sixtofour, *(ip.teredo or ())]
    if ip in _NAT64:
        found.append(IPv4Address(int(ip) & 0xFFFFFFFF))
    return [each for each in found if each is not None]


def _pinned(request: httpx2.Request, host: str, address: str) -> httpx2.Request:
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": host},
    )


async def _look_up(host: str, port: int) -> list[str]:
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))
