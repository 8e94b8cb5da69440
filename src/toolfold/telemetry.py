"""OpenTelemetry traces: a span for each run, each call and each request to a server.

Built only where `telemetry.endpoint` is set; nobody else imports this. Spans carry names, counts
and codes of errors, never arguments, answers or messages.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import anyio
import anyio.to_thread
from opentelemetry import context as otel_context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract, inject
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, set_span_in_context
from starlette.types import ASGIApp, Receive, Scope, Send

from toolfold import __version__
from toolfold.catalog.upstream import Upstream
from toolfold.catalog.upstream_request import AnswerT, UpstreamRequest
from toolfold.config.servers import ServerConfig
from toolfold.errors import ToolfoldError
from toolfold.journal.observers import BegunRun, EndedCall

_FLUSH_S: Final = 3.0
_TRACES_PATH: Final = "/v1/traces"
_TRACE_HEADERS: Final = frozenset({b"traceparent", b"tracestate", b"baggage"})


class Telemetry:
    """Sends spans to a collector. As a `JournalObserver` it has one for every run and call."""

    def __init__(self, exporter: SpanExporter) -> None:
        # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come before what is said here.
        resource = Resource({"service.name": "toolfold", "service.version": __version__})
        self._provider = TracerProvider(resource=resource.merge(Resource.create()))
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("toolfold", __version__)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send what is left when this context ends."""
        try:
            yield
        finally:
            # A collector that does not answer is tried again and again; nobody waits for that.
            with anyio.move_on_after(_FLUSH_S, shield=True):
                await anyio.to_thread.run_sync(self._provider.shutdown, abandon_on_cancel=True)

    def run(self, begun: BegunRun) -> "_RunSpan":
        """Begin the span of a run, within the trace of the client that asked for it."""
        return _RunSpan(self._tracer, begun)

    def trace(self, upstream: Upstream) -> None:
        """Have a span around each request to an upstream, which is told of the trace."""
        send = upstream.run

        async def run(request: UpstreamRequest[AnswerT], **options: Any) -> AnswerT:
            span = self._tracer.start_span(
                f"{_method(request)} {request.name}" if _is_named(request) else _method(request),
                kind=SpanKind.CLIENT,
                attributes=_request_attributes(upstream.config, request),
            )
            token = otel_context.attach(set_span_in_context(span))
            try:
                return await send(_joined(request), **options)
            except ToolfoldError as error:
                _fail(span, error.code)
                raise
            finally:
                otel_context.detach(token)
                span.end()

        # Not a class around it: everybody who has the upstream sets and reads its attributes.
        upstream.run = run  # type: ignore[method-assign]


def otlp_telemetry(endpoint: str) -> Telemetry:
    """Return what sends spans to a collector, by OTLP over HTTP, at its base address.

    The variables `OTEL_EXPORTER_OTLP_*` hold for headers, timeouts and certificates.
    """
    base = endpoint.rstrip("/")
    return Telemetry(OTLPSpanExporter(base if base.endswith(_TRACES_PATH) else base + _TRACES_PATH))


class _RunSpan:
    def __init__(self, tracer: Tracer, begun: BegunRun) -> None:
        self._tracer = tracer
        self._id = begun.id
        name, attributes = _run_words(begun)
        self._span = tracer.start_span(name, kind=SpanKind.SERVER, attributes=attributes)
        self._context = set_span_in_context(self._span)

    def call(self, tool: str, position: int) -> "_CallSpan":
        """Begin the span of a call; what the task does until its end belongs to it."""
        attributes: dict[str, str | int] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "toolfold.run.id": self._id,
            "toolfold.call.position": position,
        }
        # Not by the task's own context: guest code calls from tasks of the sandbox.
        name = f"execute_tool {tool}"
        return _CallSpan(self._tracer.start_span(name, self._context, attributes=attributes))

    def end(self, failure: str | None) -> None:
        """End it."""
        if failure is not None:
            _fail(self._span, failure)
        self._span.end()


class _CallSpan:
    def __init__(self, span: Span) -> None:
        self._span = span
        self._token = otel_context.attach(set_span_in_context(span))

    def end(self, call: EndedCall) -> None:
        """End it."""
        otel_context.detach(self._token)
        if call.is_replayed:
            self._span.set_attribute("toolfold.call.sent", False)
        if call.outcome != "ok":
            _fail(self._span, call.error or call.outcome)
        self._span.end()


class JoinedTrace:
    """Has what a request does belong to the trace that its headers name (`traceparent`)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on."""
        carrier = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in scope.get("headers", ())
            if name in _TRACE_HEADERS
        }
        if not carrier:
            await self._app(scope, receive, send)
            return
        token = otel_context.attach(extract(carrier))
        try:
            await self._app(scope, receive, send)
        finally:
            otel_context.detach(token)


def _run_words(begun: BegunRun) -> tuple[str, Mapping[str, str]]:
    """Return the name and the attributes of a run's span."""
    origin = begun.origin
    attributes = {
        "toolfold.run.id": begun.id,
        "toolfold.run.kind": begun.kind,
        "toolfold.client": origin.client,
    }
    if origin.shown is None:  # not by MCP
        return f"run {begun.kind}", attributes
    attributes |= {"mcp.method.name": "tools/call", "jsonrpc.request.id": origin.request}
    if begun.kind == "direct":
        return "tools/call", attributes
    attributes |= {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "execute_code"}
    return "tools/call execute_code", attributes


def _method(request: UpstreamRequest[Any]) -> str:
    made: Any = request.make(None, None)
    return str(made.method)


def _is_named(request: UpstreamRequest[Any]) -> bool:
    """Whether its name is one of few: URIs of resources are not."""
    return _method(request) in {"tools/call", "prompts/get"}


def _request_attributes(server: ServerConfig, request: UpstreamRequest[Any]) -> dict[str, str]:
    method = _method(request)
    attributes = {
        "mcp.method.name": method,
        "toolfold.server": server.name,
        "network.transport": "pipe" if server.is_program else "tcp",
    }
    match method:
        case "tools/call":
            attributes |= {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": request.name,
            }
        case "prompts/get":
            attributes["gen_ai.prompt.name"] = request.name
    return attributes


def _joined(request: UpstreamRequest[AnswerT]) -> UpstreamRequest[AnswerT]:
    """Return a request that says to which trace it belongs.

    The SDK's session says so of what it sends; what goes past it has to be told.
    """
    if request.call is None:
        return request
    meta: dict[str, Any] = {}
    inject(meta)
    return replace(request, call={**request.call, "_meta": meta})


def _fail(span: Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)
