"""APIs that answer from the examples and schemas of their specifications."""

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from api_samples import Judge, NoSample, sample
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from toolfold.catalog.binding import wrapped_result
from toolfold.catalog.openapi.model import Api, ApiOperation
from toolfold.catalog.openapi.operations import read_api
from toolfold.catalog.openapi.text import parse_text


@dataclass
class ServedApi:
    """One API: what it was asked, what was wrong with that, and what it answers."""

    document: Any
    api: Api
    judge: Judge
    asked: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, path: Path) -> "ServedApi":
        document = parse_text(path.read_bytes())
        return cls(document, read_api(document, variables={}), Judge(document))

    def answer(self, operation: ApiOperation) -> Any:
        tool = next(each for each in self.api.tools if each.name == operation.name)
        schema = tool.output_schema
        if schema is None:
            return None
        return sample(wrapped_result(schema) or schema, schema)


class ApiServer:
    """Serves APIs below `/NAME`; an operation is known by the header that tests send along."""

    def __init__(self, apis: dict[str, ServedApi]) -> None:
        self.apis = apis
        self.url = ""

    async def answer(self, request: Request) -> Response:
        api = self.apis[request.path_params["name"]]
        raw = (
            request.scope["raw_path"]
            .decode("latin-1")
            .removeprefix(f"/{request.path_params['name']}")
        )
        fitting = [each for each in api.api.operations.values() if _fits(each, request.method, raw)]
        operation = max(
            fitting, key=lambda each: len(re.sub(r"{.*?}", "", each.path)), default=None
        )
        if operation is None:
            api.faults.append(f"{request.method} {raw} is no operation")
            return JSONResponse({"error": "no such operation"}, 404)
        api.asked.append(operation.name)
        target = raw + (f"?{request.url.query}" if request.url.query else "")
        content = await request.body()
        api.faults += api.judge.faults(
            operation.path, operation.method, target, request.headers.items(), content or None
        )
        try:
            answer = api.answer(operation)
        except NoSample:
            answer = None
        return Response(status_code=204) if answer is None else _json(answer)


def _fits(operation: ApiOperation, method: str, path: str) -> bool:
    template = operation.path.partition("#")[0].partition("?")[0]
    pattern = re.sub(r"\\{.*?\\}", "[^/]+", re.escape(template))
    return operation.method == method and re.fullmatch(pattern, path) is not None


def _literal_chars(operation: ApiOperation) -> int:
    return len(re.sub(r"{.*?}", "", operation.path))


def _json(value: Any) -> Response:
    return Response(json.dumps(value), media_type="application/json")


@contextmanager
def serving_app(app: Any) -> Iterator[str]:
    """Serve an ASGI app on a free port of this machine from a thread; yield its URL."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(timeout=10)


@contextmanager
def serving_apis(apis: dict[str, ServedApi]) -> Iterator[ApiServer]:
    """Serve APIs below `/NAME`."""
    server = ApiServer(apis)
    methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE"]
    route = Route("/{name}/{rest:path}", server.answer, methods=methods)
    with serving_app(Starlette(routes=[route])) as url:
        server.url = url
        yield server
