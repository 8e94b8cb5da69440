"""An API behind a specification, called from guest code."""

import json
from pathlib import Path
from typing import Any

import pytest
from api_server import serving_app
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from support import MakeApp

pytestmark = pytest.mark.anyio

SPEC: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "People", "version": "1"},
    "servers": [{"url": "https://people.example/v1"}],
    "security": [{"token": []}],
    "paths": {
        "/people": {
            "get": {
                "operationId": "listPeople",
                "summary": "List people.",
                "parameters": [
                    {"name": "limit", "in": "query", "schema": {"type": "integer"}},
                    {"name": "cursor", "in": "query", "schema": {"type": "string"}},
                    {
                        "name": "tags",
                        "in": "query",
                        "explode": False,
                        "schema": {"type": "array", "items": {"type": "string"}},
                    },
                ],
                "responses": {
                    "200": {
                        "description": "ok",
                        "content": {
                            "application/json": {"schema": {"$ref": "#/components/schemas/Page"}}
                        },
                    }
                },
            },
            "post": {
                "operationId": "createPerson",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Person"}}
                    },
                },
                "responses": {
                    "201": {
                        "description": "made",
                        "content": {
                            "application/json": {"schema": {"$ref": "#/components/schemas/Person"}}
                        },
                    }
                },
            },
        },
        "/people/{id}": {
            "parameters": [
                {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
            ],
            "delete": {"operationId": "deletePerson", "responses": {"204": {"description": ""}}},
            "get": {"operationId": "getPerson", "responses": {"200": {"description": ""}}},
        },
        "/photo": {
            "post": {
                "operationId": "sendPhoto",
                "requestBody": {
                    "content": {
                        "multipart/form-data": {
                            "schema": {
                                "type": "object",
                                "required": ["file"],
                                "properties": {
                                    "file": {"type": "string", "format": "binary"},
                                    "title": {"type": "string"},
                                },
                            }
                        }
                    },
                    "required": True,
                },
                "responses": {"200": {"description": ""}},
            }
        },
        "/{what}": {
            "get": {
                "operationId": "getThing",
                "responses": {"200": {"description": ""}},
            }
        },
    },
    "components": {
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        "schemas": {
            "Person": {
                "type": "object",
                "required": ["id", "name"],
                "properties": {
                    "id": {"type": "integer", "readOnly": True},
                    "name": {"type": "string"},
                    "friends": {
                        "type": "array",
                        "items": {"$ref": "#/components/schemas/Person"},
                    },
                },
            },
            "Page": {
                "type": "object",
                "properties": {
                    "items": {"type": "array", "items": {"$ref": "#/components/schemas/Person"}},
                    "next_cursor": {"type": "string", "nullable": True},
                },
            },
        },
    },
}


class People:
    """A small API, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        self.busy = 0

    async def answer(self, request: Request) -> Response:  # noqa: C901  # a table
        target = request.scope["raw_path"].decode() + (
            f"?{request.url.query}" if request.url.query else ""
        )
        self.asked.append((request.method, target, dict(request.headers), await request.body()))
        if self.busy:
            self.busy -= 1
            return JSONResponse({}, 429, {"retry-after": "0.01"})
        match request.method, request.url.path:
            case "GET", "/people":
                start = int(request.query_params.get("cursor", 0))
                people = [{"id": n, "name": f"P{n}"} for n in range(start, start + 2)]
                return JSONResponse(
                    {"items": people, "next_cursor": str(start + 2) if start < 4 else None}
                )
            case "POST", "/people":
                return JSONResponse(json.loads(await request.body()) | {"id": 7}, 201)
            case "DELETE", _:
                return Response(status_code=204)
            case "GET", "/redirect":
                return RedirectResponse("http://elsewhere.example/x")
            case "GET", "/moved":
                return RedirectResponse("/people/3")
            case "GET", "/large":
                return Response(
                    json.dumps([{"n": n} for n in range(600_000)]), media_type="application/json"
                )
            case "GET", "/picture":
                return Response(b"\x89PNG...", media_type="image/png")
            case "GET", "/number":
                return JSONResponse(42)
            case "GET", path if path.startswith("/people/"):
                return JSONResponse({"id": 3, "path": path})
        return JSONResponse({"detail": "no such thing"}, 404)


@pytest.fixture
def people(tmp_path: Path) -> Any:
    served = People()
    methods = ["GET", "POST", "DELETE"]
    app = Starlette(routes=[Route("/{rest:path}", served.answer, methods=methods)])
    with serving_app(app) as url:
        (tmp_path / "people.json").write_text(json.dumps(SPEC))
        served.entry = {  # type: ignore[attr-defined]
            "openapi": str(tmp_path / "people.json"),
            "url": url,
            "auth": {"token": "s3cret"},
        }
        yield served


async def test_operations_are_functions_with_arguments_from_everywhere(
    running: MakeApp, people: Any, home: Path
) -> None:
    (home / "config").mkdir(parents=True)
    (home / "config" / "policy.toml").write_text('[[policy]]\naction = "allow"\n')
    async with running({"people": people.entry}) as app:
        result = await app.run(
            "import people\n"
            "page = people.list_people(limit=2, tags=['a b', 'c,d'])\n"
            "made = people.create_person(name='Ada')\n"
            "gone = people.delete_person(id=7)\n"
            "print([page['items'][1]['name'], made['id'], gone])"
        )
    assert result.output == "['P1', 7, None]\n", result.text
    first, second, third = people.asked
    assert first[:2] == ("GET", "/people?limit=2&tags=a%20b,c%2Cd")
    assert first[2]["authorization"] == "Bearer s3cret"
    assert json.loads(second[3]) == {"name": "Ada"}
    assert third[:2] == ("DELETE", "/people/7")


async def test_pages_follow_the_cursor_of_an_answer(running: MakeApp, people: Any) -> None:
    async with running({"people": people.entry}) as app:
        result = await app.run(
            "import people\nprint([p['id'] for p in people.pages(people.list_people(limit=2))])"
        )
    assert result.output == "[0, 1, 2, 3, 4, 5]\n", result.text
    assert [target for _, target, *_ in people.asked] == [
        "/people?limit=2",
        "/people?limit=2&cursor=2",
        "/people?limit=2&cursor=4",
    ]


async def test_a_misspelt_argument_is_refused_before_anything_is_sent(
    running: MakeApp, people: Any
) -> None:
    async with running({"people": people.entry}) as app:
        result = await app.run("import people\npeople.create_person(nam='Ada')")
    assert "nam" in result.text
    assert people.asked == []


async def test_a_rate_limit_is_waited_for(running: MakeApp, people: Any) -> None:
    people.busy = 2
    async with running({"people": people.entry}) as app:
        result = await app.run("import people\nprint(people.create_person(name='Ada')['id'])")
    assert result.output == "7\n", result.text
    assert len(people.asked) == 3


async def test_values_in_paths_stay_in_their_segment(running: MakeApp, people: Any) -> None:
    async with running({"people": people.entry}) as app:
        quoted = await app.run("import people\npeople.get_thing(what='a/../b?c=d#e')")
        dots = await app.run("import people\npeople.get_thing(what='..')")
        empty = await app.run("import people\npeople.get_thing(what='')")
    assert "404" in quoted.text
    assert people.asked[0][1] == "/a%2F..%2Fb%3Fc%3Dd%23e"
    assert "cannot be" in dots.text
    assert "cannot be empty" in empty.text
    assert len(people.asked) == 1


async def test_redirects_are_followed_only_at_the_same_server(
    running: MakeApp, people: Any
) -> None:
    async with running({"people": people.entry}) as app:
        away = await app.run("import people\npeople.get_thing(what='redirect')")
        same = await app.run("import people\nprint(people.get_thing(what='moved')['path'])")
    assert "elsewhere.example" in away.text
    assert "not followed" in away.text
    assert same.output == "/people/3\n", same.text


async def test_answers_of_every_kind_are_values_or_files(running: MakeApp, people: Any) -> None:
    async with running({"people": people.entry}) as app:
        large = await app.run(
            "import people\nanswer = people.get_thing(what='large')\nprint(str(answer)[:300])"
        )
        picture = await app.run("import people\npeople.get_thing(what='picture')")
        missing = await app.run(
            "import people\ntry:\n    people.get_thing(what='nothing')\n"
            "except RuntimeError as error:\n    print(error)"
        )
    assert "/workspace/" in large.output, large.text
    assert "/workspace/" in picture.text, picture.text
    assert "404" in missing.output
    assert "no such thing" in missing.output


async def test_files_are_sent_as_parts_of_a_form(running: MakeApp, people: Any) -> None:
    async with running({"people": people.entry}) as app:
        await app.run(
            "import people\n"
            "people.send_photo(title='T', file={'base64': 'AAEC', 'filename': 'a\\r\\nX: y.png'})"
        )
    _, _, headers, body = people.asked[0]
    assert headers["content-type"].startswith("multipart/form-data; boundary=")
    assert b'name="file"; filename="a%0D%0AX: y.png"' in body
    assert b"\x00\x01\x02" in body


async def test_reading_is_read_only_and_deleting_destructive(running: MakeApp, people: Any) -> None:
    async with running({"people": people.entry}) as app:
        await app.app.catalog.learn()
        tools = app.app.catalog.functions("people")
    assert tools["list_people"].listed.read_only
    assert tools["delete_person"].listed.destructive
    assert tools["delete_person"].listed.idempotent
    assert not tools["create_person"].listed.read_only
