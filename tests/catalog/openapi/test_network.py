"""What a specification must not have us do: reach private places, read files, run code."""

import ast
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from toolfold.catalog.known_tools import KnownTools
from toolfold.catalog.openapi.model import ApiOperation, ApiParameter
from toolfold.catalog.openapi.network import AddressRefused, GuardedTransport, is_public
from toolfold.catalog.openapi.operations import read_api
from toolfold.catalog.openapi.request import make_request
from toolfold.catalog.openapi.sources import read_spec
from toolfold.catalog.openapi.text import parse_text
from toolfold.catalog.stubs import render_stub
from toolfold.errors import BadCall, ConfigError
from toolfold.jsontypes import JsonObject

pytestmark = pytest.mark.anyio

PRIVATE = [
    *("127.0.0.1", "10.0.0.1", "172.16.5.4", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
    *("0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fd00::1"),
    *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::"),
    *("fe80::1%eth0", "ff02::1", "192.0.2.1", "198.18.0.1", "not an address"),
]


@pytest.mark.parametrize("address", PRIVATE)
def test_no_private_address_is_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_public_addresses_are(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "::1"])
async def test_a_public_name_with_a_private_address_is_refused(address: str) -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        return ["93.184.216.34", address]

    transport = GuardedTransport(set(), resolve=resolve)
    async with httpx2.AsyncClient(transport=transport) as client:
        with pytest.raises(AddressRefused):
            await client.get("http://public.example/x")


async def test_an_address_that_the_user_named_is_named_with_its_port() -> None:
    transport = GuardedTransport({("127.0.0.1", 1)})
    async with httpx2.AsyncClient(transport=transport) as client:
        with pytest.raises(httpx2.ConnectError):  # nobody listens there, but it was tried
            await client.get("http://127.0.0.1:1/")
        with pytest.raises(AddressRefused):
            await client.get("http://127.0.0.1:2/")


@pytest.mark.parametrize(
    "reference",
    [
        "/etc/passwd",
        "file:///etc/passwd",
        "../secret.json",
        "sub/../../secret.json",
        "http://169.254.169.254/latest/meta-data",
        "https://elsewhere.example/x.json#/a",
        "link.json",
        "missing.json",
        "/proc/self/environ",
    ],
)
async def test_references_lead_nowhere_but_below_the_specification(
    tmp_path: Path, reference: str
) -> None:
    directory = tmp_path / "spec"
    directory.mkdir()
    (tmp_path / "secret.json").write_text('{"type": "string", "description": "s3cret"}')
    (directory / "link.json").symlink_to(tmp_path / "secret.json")
    (directory / "spec.json").write_text(json.dumps(_spec_with({"$ref": reference})))
    document, files = await read_spec(str(directory / "spec.json"))
    assert len(files.contents) == 1
    assert files.faults
    assert "s3cret" not in json.dumps(document)
    read_api(document, variables={})


async def test_references_to_files_beside_the_specification_are_followed(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "a.yaml").write_text("A: {$ref: 'b.yaml#/B'}\n")
    (tmp_path / "parts" / "b.yaml").write_text(
        "B: {type: object, properties: {n: {$ref: '#/N'}}}\nN: {type: integer}\n"
    )
    (tmp_path / "spec.json").write_text(json.dumps(_spec_with({"$ref": "parts/a.yaml#/A"})))
    document, files = await read_spec(str(tmp_path / "spec.json"))
    assert len(files.contents) == 3
    api = read_api(document, variables={})
    stub = KnownTools({"api": api.tools}).stub("api")
    assert "n: int" in stub


HOSTILE = [
    'x"""\nimport os; os.system("true")\n"""',
    "a(): pass\nimport os\ndef b",
    "__import__('os').system('true')",
    "class",
    "\u202eevil\u202c",
    "x\r\ny",
    "'; DROP TABLE x; --",
    "a" * 5_000,
    "日本語",
    "\\",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_names_and_descriptions_never_become_code(text: str) -> None:
    spec = _spec_with({"type": "object", "properties": {text: {"type": "string", "enum": [text]}}})
    operation: Any = spec["paths"]["/x"]["get"]  # type: ignore[index, call-overload]
    operation |= {"operationId": text, "summary": text, "description": text}
    operation["parameters"] = [
        {"name": text, "in": "query", "description": text, "schema": {"enum": [text]}}
    ]
    api = read_api(spec, variables={})
    known = KnownTools({"api": api.tools})
    for source in (known.stub("api"), *map(render_stub, known.tools)):
        allowed = (ast.ImportFrom, ast.Import, ast.ClassDef, ast.FunctionDef, ast.Assign)
        for node in ast.parse(source).body:
            assert isinstance(node, allowed)
            assert not isinstance(node, ast.Import) or node.names[0].name == "builtins"


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("path", ".."),
        ("path", "."),
        ("path", ""),
        ("header", "a\r\nX-Evil: 1"),
        ("header", "a\nb"),
        ("header", "a\0b"),
    ],
)
def test_values_that_would_change_the_request_are_refused(place: Any, value: str) -> None:
    with pytest.raises(BadCall):
        make_request(_operation(place), {"v": value})


@pytest.mark.parametrize(
    "value", ["a/b", "a?b=c", "a#b", "../..", "%2e%2e", "a&admin=1", "a b", "\r\n", "ä"]
)
@pytest.mark.parametrize("place", ["path", "query"])
def test_values_stay_within_their_place(place: Any, value: str) -> None:
    target = make_request(_operation(place), {"v": value}).target
    path, _, query = target.partition("?")
    assert path.count("/") == 2
    assert "#" not in target
    assert "&" not in query
    assert "\n" not in target


@pytest.mark.parametrize("name", ["Host", "Content-Length", "Cookie", "X: y", "a\r\nb", ""])
def test_a_specification_cannot_name_headers_that_steer_requests(name: str) -> None:
    spec = _spec_with({})
    operation: Any = spec["paths"]["/x"]["get"]  # type: ignore[index, call-overload]
    operation["parameters"] = [{"name": name, "in": "header", "schema": {"type": "string"}}]
    (only,) = read_api(spec, variables={}).operations.values()
    assert only.parameters == ()


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
        + "\n".join(
            f"c{n}: &c{n} [{', '.join([f'*c{n - 1}' if n else '*b'] * 9)}]" for n in range(9)
        ),
        "[" * 5_000,
        "a: " * 2_000,
        "!!python/object/apply:os.system ['true']\n---\n: : :",
    ],
)
def test_texts_that_would_grow_without_end_are_refused(text: str) -> None:
    try:
        value = parse_text(text.encode())
    except ConfigError:
        return
    with pytest.raises(ConfigError):
        read_api(value, variables={})


def _spec_with(schema: JsonObject) -> JsonObject:
    answer: JsonObject = {"description": "", "content": {"application/json": {"schema": schema}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "T", "version": "1"},
        "paths": {"/x": {"get": {"operationId": "x", "responses": {"200": answer}}}},
    }


def _operation(place: Any) -> ApiOperation:
    style = "form" if place == "query" else "simple"
    path = "/a/{v}" if place == "path" else "/a/b"
    parameter = ApiParameter(name="v", argument="v", place=place, style=style, explode=False)
    return ApiOperation(name="x", method="GET", path=path, parameters=(parameter,))
