"""An API as an upstream: its operations are tools, and a call is a request."""

import hashlib
import json
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urljoin, urlsplit

import anyio
import httpx2
import mcp_types as types

from toolfold.catalog.large import MessageSizes, TooLong
from toolfold.catalog.openapi.answers import failed_with, read_result, result_of
from toolfold.catalog.openapi.auth import credentials_for, wanted_schemes
from toolfold.catalog.openapi.cache import ApiCache
from toolfold.catalog.openapi.graphql import unwrapped
from toolfold.catalog.openapi.load import load_api
from toolfold.catalog.openapi.model import Api, ApiOperation, GraphQLField
from toolfold.catalog.openapi.network import GuardedTransport, Resolve, host_and_port, origin_of
from toolfold.catalog.openapi.pages import items_of, next_arguments, next_link
from toolfold.catalog.openapi.request import ApiRequest, make_request
from toolfold.catalog.openapi.sources import SpecFiles, ask_schema, is_url
from toolfold.catalog.pace import CallPace
from toolfold.catalog.questions import Elicitor
from toolfold.catalog.secrets import ServerSecrets
from toolfold.catalog.tool import ListedTool
from toolfold.catalog.tools_only import ToolsOnly
from toolfold.catalog.transport import retry_after_s
from toolfold.catalog.upstream import OnWait
from toolfold.catalog.upstream_request import (
    AnswerT,
    CallListener,
    UpstreamRequest,
)
from toolfold.config.servers import ServerConfig
from toolfold.errors import (
    ConfigError,
    ToolFailed,
    UpstreamTimedOut,
    UpstreamUnavailable,
)
from toolfold.jsontypes import Json, JsonObject

_ATTEMPTS: Final = 4
_MAX_REDIRECTS: Final = 5
_REPEATABLE: Final = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "QUERY"})
_OVERLOADED: Final = frozenset({429, 503})
_REMEMBERED: Final = 64  # answers whose next page is known
_MAX_PAGES: Final = 1_000
_RETRY_LOAD_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class _Page:
    operation: ApiOperation
    arguments: JsonObject
    link: str | None


class ApiUpstream(ToolsOnly):
    """An API that a specification describes."""

    def __init__(
        self,
        config: ServerConfig,
        *,
        cache_directory: Path,
        sizes: MessageSizes,
        secrets: ServerSecrets,
        auth: httpx2.Auth | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        super().__init__(config, cache_directory=cache_directory, sizes=sizes, secrets=secrets)
        self._cache = ApiCache(cache_directory, config)
        self._api: Api | None = None
        self._loading = anyio.Lock()
        self._retry_at = 0.0
        self._busy_until = 0.0
        self._pace = CallPace(config.name, config.rate_per_s)
        self._auth = auth
        self._resolve = resolve
        self._client: httpx2.AsyncClient | None = None
        self._pages: OrderedDict[str, _Page] = OrderedDict()

    @property
    def state(self) -> str:
        """Whether its specification is known."""
        return "idle" if self._api is None else "online"

    @property
    def known_tools(self) -> tuple[ListedTool, ...] | None:
        """Its operations; None while its specification is not read."""
        return None if self._api is None else self._api.tools

    async def tools(self, *, fresh: bool = False) -> tuple[ListedTool, ...]:
        """Return its operations, reading the specification if it is not known.

        Raises:
            UpstreamUnavailable: The specification cannot be used.
        """
        api = await self._loaded(fresh=fresh)
        if fresh:
            await self._look_for_secrets()
        return api.tools

    async def run(
        self,
        request: UpstreamRequest[AnswerT],
        *,
        on_wait: OnWait = lambda _why, _seconds: None,
        ask: Elicitor | None = None,  # noqa: ARG002  # APIs ask nothing
        listener: CallListener | None = None,  # noqa: ARG002  # and say nothing meanwhile
    ) -> AnswerT:
        """Make the request of a call and return the answer, whatever it says.

        Calls that change something go one at a time. One that was refused for the sake of a
        rate limit is made again when the API asks for it.

        Raises:
            UpstreamUnavailable: The API cannot be reached.
            UpstreamTimedOut: It did not answer in time.
            ToolFailed: The request may not be sent, or the answer not be taken.
            BadCall: The arguments cannot be sent.
        """
        params = request.make(None, None).params
        if not isinstance(params, types.CallToolRequestParams):
            raise ToolFailed(f"{self.name} is an API, which has neither prompts nor resources.")
        api = await self._loaded()
        arguments = cast("JsonObject", params.arguments or {})
        async with self._turns.take(is_write=request.is_write):
            if params.name in api.operations:
                operation = api.operations[params.name]
                result = await self._call(api, operation, arguments, on_wait=on_wait)
            else:
                result = await self._follow(api, arguments, on_wait=on_wait)
        return cast("AnswerT", result)

    def restart(self) -> None:
        """See `Upstream`: the specification is read again, and secrets are."""
        self._api = None
        self._forget_secrets()

    async def serve(self) -> None:
        """Hold connections until cancelled."""
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                if self._client is not None:
                    await self._client.aclose()

    def _client_for(self, server: ServerConfig) -> httpx2.AsyncClient:
        if self._client is not None:
            return self._client
        named = {host_and_port(url) for url in (server.url, server.spec) if is_url(url)}
        self._client = httpx2.AsyncClient(
            transport=GuardedTransport(named, resolve=self._resolve),
            timeout=httpx2.Timeout(self.config.timeout_s, connect=30.0),
            follow_redirects=False,
            auth=self._auth,
        )
        return self._client

    async def _loaded(self, *, fresh: bool = False) -> Api:
        if self._api is not None and not fresh:
            return self._api
        async with self._loading:
            if self._api is not None and not fresh:
                return self._api
            if self.fault and time.monotonic() < self._retry_at:
                raise self._unavailable()
            try:
                api = await load_api(
                    self.config, self._cache, fresh=fresh, resolve=self._resolve, ask=self._ask
                )
            except ConfigError as error:
                self.fault = f"its specification {error}"
                self._retry_at = time.monotonic() + _RETRY_LOAD_S
                self._forget_secrets()  # a GraphQL server may have refused the one it was given
                raise self._unavailable() from error
            self._take(api)
        return api

    async def _ask(self, question: bytes) -> SpecFiles:
        server = await self._filled()
        return await ask_schema(server, question, auth=self._auth, resolve=self._resolve)

    def _take(self, api: Api) -> None:
        self.fault = None
        self.protocol = api.protocol
        is_new = self._api is None or api.tools != self._api.tools
        self._api = api
        if is_new:
            for tell in list(self.listeners):
                tell()

    def _unavailable(self) -> UpstreamUnavailable:
        return UpstreamUnavailable(f"The API {self.name!r} cannot be used: {self.fault}")

    async def _call(
        self, api: Api, operation: ApiOperation, arguments: JsonObject, *, on_wait: OnWait
    ) -> types.CallToolResult:
        request = make_request(operation, arguments)
        server = (await self._filled()).config
        url = self._base(api, operation, server.url) + request.target
        credentials = credentials_for(api, operation, dict(server.auth))
        if credentials.query:
            query = "&".join(f"{name}={value}" for name, value in credentials.query)
            url += f"{'&' if '?' in url else '?'}{query}"
        headers = [*request.headers, *credentials.headers, *server.headers]
        may_repeat = operation.method in _REPEATABLE
        for attempt in range(_ATTEMPTS):
            await self._pace.wait(on_wait, busy_until=self._busy_until)
            try:
                return await self._send(operation, arguments, url, headers, request)
            except _Overloaded as error:
                repeats = may_repeat or error.status == 429
                if attempt == _ATTEMPTS - 1 or not repeats:
                    raise ToolFailed(
                        f"{self.name} is overloaded (status {error.status}); "
                        f"{operation.name} was not done. Try again later."
                    ) from error
        raise AssertionError("unreachable")

    async def _send(
        self,
        operation: ApiOperation,
        arguments: JsonObject,
        url: str,
        headers: list[tuple[str, str]],
        request: ApiRequest,
    ) -> types.CallToolResult:
        try:
            with anyio.fail_after(self.config.timeout_s):
                return await self._exchange(operation, arguments, url, headers, request)
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise UpstreamTimedOut(
                f"{self.name}: {operation.name} did not answer within {self.config.timeout_s:g} s. "
                "It may still be at work there."
            ) from error
        except TooLong as error:
            raise ToolFailed(
                f"{self.name}: {operation.name} failed: {error}. Ask for less: a page, fewer "
                "fields."
            ) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            words = self.cover_words(str(error) or type(error).__name__)
            raise UpstreamUnavailable(
                self._covered(f"The API {self.name!r} cannot be reached at {_shown(url)}: {words}")
            ) from error

    async def _exchange(
        self,
        operation: ApiOperation,
        arguments: JsonObject,
        url: str,
        headers: list[tuple[str, str]],
        request: ApiRequest,
    ) -> types.CallToolResult:
        method, content = request.method, request.content
        client = self._client_for((await self._filled()).config)
        for _ in range(_MAX_REDIRECTS):
            outgoing = client.build_request(method, url, headers=headers, content=content)
            response = await client.send(outgoing, stream=True)
            try:
                if response.is_redirect:
                    url, method = self._redirected(url, method, response, operation)
                    content = content if method == request.method else None
                    continue
                return await self._read(operation, arguments, response)
            finally:
                await response.aclose()
        raise ToolFailed(f"{self.name}: {operation.name} was redirected too often.")

    def _redirected(
        self, url: str, method: str, response: httpx2.Response, operation: ApiOperation
    ) -> tuple[str, str]:
        """Return where a request goes on: nowhere but at the same server."""
        target = urljoin(url, response.headers.get("location", ""))
        if origin_of(target) != origin_of(url):
            raise ToolFailed(
                f"{self.name}: {operation.name} answered with a redirect to "
                f"{self._covered(_shown(target))}, which is not a server of this API. It was not "
                "followed."
            )
        is_changed = response.status_code == 303 or (
            response.status_code in {301, 302} and method == "POST"
        )
        return target, "GET" if is_changed and method != "HEAD" else method

    async def _read(
        self, operation: ApiOperation, arguments: JsonObject, response: httpx2.Response
    ) -> types.CallToolResult:
        if response.status_code in _OVERLOADED:
            wait = retry_after_s(response.headers.get("retry-after"), time.time())
            self._busy_until = max(self._busy_until, time.monotonic() + wait)
            raise _Overloaded(response.status_code)
        result = await read_result(
            response, self.parts, is_head=operation.method == "HEAD", redactor=self._redactor
        )
        if result.is_error:
            return self._explained(operation, response.status_code, result)
        if operation.graphql is not None:
            return _unwrapped(operation.graphql, result)
        if operation.method == "GET":
            self._remember(operation, arguments, response, result)
        return result

    def _explained(
        self, operation: ApiOperation, status: int, result: types.CallToolResult
    ) -> types.CallToolResult:
        """Say what to do about a refusal, where that is clear."""
        if status != 401 or self._api is None:
            return result
        self._forget_secrets()  # what a command or a file gives may be another one by now
        wanted = wanted_schemes(self._api, operation)
        hint = f"Set `auth` of {self.name!r}" + (f" for {' or '.join(wanted)}" if wanted else "")
        text = types.TextContent(type="text", text=f"{hint}, or run `toolfold login {self.name}`.")
        return result.model_copy(update={"content": [*result.content, text]})

    def _base(self, api: Api, operation: ApiOperation, own_url: str) -> str:
        """Return the server of an operation; that of the entry, where it names one.

        Raises:
            ToolFailed: There is none, or it is none that requests can be sent to.
        """
        if operation.graphql is not None and is_url(own_url or self.config.spec):
            return own_url or self.config.spec  # all of it is one address
        if own_url:
            return own_url.rstrip("/")
        for server in (*operation.servers, *api.servers, *(() if api.servers else ("/",))):
            url = str(urljoin(self.config.spec, server)) if is_url(self.config.spec) else server
            parts = urlsplit(url)
            if parts.scheme in {"http", "https"} and parts.hostname and not parts.username:
                return url.partition("?")[0].partition("#")[0].rstrip("/")
        raise ToolFailed(
            f"{self.name}: the specification does not say where its server is. "
            'Write "url": "https://…" in its entry.'
        )

    def _remember(
        self,
        operation: ApiOperation,
        arguments: JsonObject,
        response: httpx2.Response,
        result: types.CallToolResult,
    ) -> None:
        link = next_link(response.headers.get("link", ""))
        if link is None and operation.cursor is None:
            return
        block = result.content[0]
        if isinstance(block, types.TextContent) and (value := _parsed(block.text)) is not None:
            self._pages[_fingerprint(value)] = _Page(operation, arguments, link)
            while len(self._pages) > _REMEMBERED:
                self._pages.popitem(last=False)

    async def _follow(
        self, api: Api, arguments: JsonObject, *, on_wait: OnWait
    ) -> types.CallToolResult:
        """Return the items of an answer and of all pages after it."""
        value, most = arguments.get("first"), arguments.get("max_pages", 100)
        items = list(items_of(value))
        page = self._pages.get(_fingerprint(value))
        limit = min(most, _MAX_PAGES) if isinstance(most, int) else 100
        for _ in range(limit - 1):
            if page is None:
                break
            following = next_arguments(page.operation, page.arguments, value, page.link)
            if following is None:
                break
            result = await self._call(api, page.operation, following, on_wait=on_wait)
            block = result.content[0] if result.content else None
            if result.is_error or not isinstance(block, types.TextContent):
                return result
            value = _parsed(block.text)
            new = items_of(value)
            if not new:
                break
            items += new
            page = self._pages.get(_fingerprint(value))
        text = json.dumps(items, ensure_ascii=False)
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


class _Overloaded(Exception):
    """The API asks to be asked later."""

    def __init__(self, status: int) -> None:
        super().__init__(str(status))
        self.status = status


def _unwrapped(field: GraphQLField, result: types.CallToolResult) -> types.CallToolResult:
    """Return what the one field that was asked for holds; whole where that is kept in a file."""
    found = unwrapped(field, result)
    if found is None:
        return result
    is_answered, value = found
    return result_of(value) if is_answered else failed_with(str(value))


def _parsed(text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def _fingerprint(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
