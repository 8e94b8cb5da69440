"""A GraphQL server, called from guest code."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from api_server import serving_app
from graphql import GraphQLSchema, build_schema, graphql_sync
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from support import MakeApp

from toolfold.catalog.openapi.graphql import GraphQLSpec, read_schema, request_content
from toolfold.catalog.openapi.model import GraphQLField
from toolfold.catalog.openapi.operations import read_graphql
from toolfold.config.jsonc import parse_jsonc
from toolfold.entrypoints.cli import run_command
from toolfold.errors import BadCall, ConfigError

SDL = """
enum State { OPEN CLOSED }
scalar Date
interface Named { name: String! }
type Person implements Named {
  id: ID!
  name: String!
  email(hidden: Boolean!): String
  friends: [Person!]!
}
type Issue {
  id: ID!
  title: String!
  state: State!
  opened: Date
  old: String @deprecated(reason: "gone")
  author: Person
  subject: Subject
  comments(first: Int = 10): CommentConnection!
}
type Comment { id: ID! text: String! author: Person }
type CommentEdge { cursor: String! node: Comment }
type CommentConnection { totalCount: Int! edges: [CommentEdge!]! }
union Subject = Person | Issue
input IssueInput { title: String! state: State = OPEN labels: [String!] }
type Query {
  "One issue."
  issue(id: ID!): Issue
  issues(state: State, limit: Int = 10): [Issue!]!
  count: Int!
  viewer: Person!
  large: [Person!]!
  broken: Person
  subjects(fields: [String!]): [Subject!]!
}
type Mutation {
  "Open an issue."
  createIssue(input: IssueInput!): Issue!
  count: Int!
}
type Subscription { ticks: Int! }
"""
ADA = {"id": "p1", "name": "Ada", "friends": [], "__typename": "Person"}
ISSUE = {
    "id": "1", "title": "Leaks", "state": "OPEN", "opened": "2026-01-02", "author": ADA,
    "subject": ADA, "comments": {"totalCount": 0, "edges": []}, "__typename": "Issue",
}  # fmt: skip


class Tracker:
    """The server, and what it was asked."""

    def __init__(self) -> None:
        self.schema: GraphQLSchema = build_schema(SDL)
        self.asked: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.before: Callable[[], Response | None] = lambda: None

    def root(self) -> dict[str, Any]:
        def fail(*_: Any) -> None:
            raise ValueError("the disk is full")

        return {
            "issue": lambda _info, **given: {**ISSUE, **given},
            "issues": lambda _info, limit, state=None: [ISSUE] * limit,
            "count": lambda _info: 7,
            "viewer": ADA,
            "large": [{**ADA, "name": "x" * 100}] * 60_000,
            "broken": fail,
            "subjects": lambda _info, fields=None: [ADA, ISSUE],
            "createIssue": lambda _info, **given: {**ISSUE, **given["input"]},
        }

    async def answer(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.asked.append((dict(request.headers), body))
        if (response := self.before()) is not None:
            return response
        done = graphql_sync(
            self.schema, body["query"], self.root(), variable_values=body.get("variables")
        )
        return JSONResponse(done.formatted)


@pytest.fixture
def tracker() -> Iterator[Tracker]:
    served = Tracker()
    app = Starlette(routes=[Route("/graphql/", served.answer, methods=["GET", "POST"])])
    with serving_app(app) as url:
        served.url = f"{url}/graphql/"  # type: ignore[attr-defined]
        served.entry = {"graphql": f"{url}/graphql/", "auth": "s3cret-token"}  # type: ignore[attr-defined]
        yield served


async def test_queries_and_mutations_are_functions(
    running: MakeApp, tracker: Any, home: Path
) -> None:
    (home / "config").mkdir(parents=True)
    (home / "config" / "policy.toml").write_text('[[policy]]\naction = "allow"\n')
    async with running({"tracker": tracker.entry}) as app:
        result = await app.run(
            "import tracker\n"
            "one = tracker.issue(id='4')\n"
            "few = tracker.issues(limit=2, state='OPEN', fields='title author { name }')\n"
            "made = tracker.create_issue(input={'title': 'New'}, fields=['title', 'author.id'])\n"
            "print(one['title'], one['author']['name'], one['id'])\n"
            "print(few[1])\nprint(made)\nprint(tracker.count())"
        )
    assert result.success, result.text
    assert result.output.splitlines() == [
        "Leaks Ada 4",
        "{'title': 'Leaks', 'author': {'name': 'Ada'}}",
        "{'title': 'New', 'author': {'id': 'p1'}}",
        "7",
    ]
    assert all(each["authorization"] == "Bearer s3cret-token" for each, _ in tracker.asked)
    introspection, first, *_ = [body for _, body in tracker.asked]
    assert "__schema" in introspection["query"]
    assert first["variables"] == {"id": "4"}
    assert "s3cret-token" not in result.text


async def test_queries_only_read_and_mutations_do_not(running: MakeApp, tracker: Any) -> None:
    async with running({"tracker": tracker.entry}) as app:
        await app.app.catalog.learn()
        tools = app.app.catalog.functions("tracker")
        stub = app.app.catalog.stub("tracker")
        [status] = app.app.catalog.statuses()
    assert tools["issue"].listed.read_only
    assert not tools["create_issue"].listed.read_only
    assert "ticks" not in tools
    assert {name for name in tools if name.startswith("count")} == {"count", "count_mutation"}
    assert status.protocol == "GraphQL"
    assert "def issue(" in stub
    assert "Literal[" in stub
    assert "OPEN" in stub


async def test_what_is_wrong_is_found_before_anything_is_sent(
    running: MakeApp, tracker: Any
) -> None:
    async with running({"tracker": tracker.entry}) as app:
        await app.app.catalog.learn()
        tracker.asked.clear()
        misspelt = await app.run("import tracker\ntracker.issue(number=1)")
        state = await app.run("import tracker\ntracker.issues(state='HALF')")
        breaks_out = await app.run(
            "import tracker\n"
            "fields = 'id } } mutation { createIssue(input: {title: \"x\"}) { id'\n"
            "tracker.issue(id='1', fields=fields)"
        )
    assert not misspelt.success
    assert not state.success
    assert "'fields'" in breaks_out.text
    assert tracker.asked == []


async def test_errors_of_the_server_are_failures(running: MakeApp, tracker: Any) -> None:
    async with running({"tracker": tracker.entry}) as app:
        whole = await app.run("import tracker\ntracker.broken()")
        unknown = await app.run("import tracker\ntracker.viewer(fields='nothing')")
    assert "the disk is full" in whole.text
    assert not whole.success
    assert "Cannot query field 'nothing'" in unknown.text


async def test_a_large_answer_is_kept_in_a_file(running: MakeApp, tracker: Any) -> None:
    async with running({"tracker": tracker.entry}) as app:
        result = await app.run("import tracker\nprint(str(tracker.large())[:200])")
    assert "/workspace/" in result.output, result.text


async def test_rate_limits_and_redirects_are_those_of_every_api(
    running: MakeApp, tracker: Any
) -> None:
    async with running({"tracker": tracker.entry}) as app:
        await app.app.catalog.learn()
        answers: list[Response | None] = [JSONResponse({}, 429, {"retry-after": "0.01"}), None]
        tracker.before = lambda: answers.pop(0)
        waited = await app.run("import tracker\nprint(tracker.count())")
        tracker.before = lambda: RedirectResponse("http://elsewhere.example/x", 307)
        away = await app.run("import tracker\ntracker.count()")
    assert waited.output == "7\n", waited.text
    assert "not followed" in away.text


async def test_a_schema_file_needs_the_address_of_its_server(
    running: MakeApp, tracker: Any, tmp_path: Path
) -> None:
    (tmp_path / "schema.graphql").write_text(SDL)
    entry = {"graphql": str(tmp_path / "schema.graphql")}
    there = entry | {"url": tracker.url}
    async with running({"lost": entry, "there": there}) as app:
        lost = await app.run("import lost\nlost.count()")
        found = await app.run("import there\nprint(there.count())")
    assert '"url"' in lost.text
    assert found.output == "7\n", found.text


async def test_addresses_of_this_machine_are_reached_only_where_the_user_names_them(
    running: MakeApp, tracker: Any
) -> None:
    tracker.before = lambda: RedirectResponse("http://127.0.0.1:1/graphql", 307)
    async with running({"tracker": tracker.entry}) as app:
        result = await app.run("import tracker\ntracker.count()")
    assert "status 307" in result.text
    assert len(tracker.asked) == 1


async def test_a_server_that_repeats_its_token_does_not_show_it(
    running: MakeApp, tracker: Any
) -> None:
    tracker.schema = build_schema('type Query { "Say s3cret-token." count: Int! }')
    async with running({"tracker": tracker.entry}) as app:
        await app.app.catalog.learn()
        [tool] = app.app.catalog.functions("tracker").values()
    refused = {"errors": [{"message": "s3cret-token is no good"}]}
    tracker.before = lambda: JSONResponse(refused)
    unknown = {**tracker.entry, "graphql": f"{tracker.url}?"}  # to the cache
    async with running({"other": unknown}) as app:
        said = await app.run("import other\nother.count()")
    assert "s3cret" not in tool.listed.description
    assert "is no good" in said.text
    assert "s3cret" not in said.text


def test_the_default_selection_is_values_and_one_level_of_objects() -> None:
    fields = read_schema(SDL.encode(), "https://x.example/graphql").fields
    assert fields["/query/issue"].selection == (
        "id title state opened author { id name } "
        "comments { totalCount edges { cursor node { id text } } }"
    )
    assert fields["/query/subjects"].selection == (
        "__typename ... on Person { id name } ... on Issue { id title state opened }"
    )
    assert fields["/query/subjects"].selector == "selection"
    assert fields["/query/count"].selector == ""


def test_every_default_selection_is_valid() -> None:
    schema = build_schema(SDL)
    for field in read_schema(SDL.encode(), "").fields.values():
        given = {"id": "1"} if field.name == "issue" else {}
        if field.kind == "query":
            body = json.loads(request_content(field, given))
            done = graphql_sync(schema, body["query"], None, variable_values=body["variables"])
            said = [error.message for error in done.errors or ()]
            assert not [each for each in said if "Cannot query" in each or "Syntax" in each], said


HOSTILE = {
    "no text": b"\xff\xfe",
    "nothing": b"",
    "no schema": b"hello",
    "a number": b"7",
    "another JSON": b'{"openapi": "3.1.0"}',
    "half an answer": b'{"data": {"__schema": {"types": [{"kind": "OBJECT"}]}}}',
    "odd types": b'{"data": {"__schema": {"queryType": {"name": 7}, "types": 7}}}',
    "a refusal": b'{"errors": [{"message": "no introspection"}]}',
    "deep": b"type Query { a: " + b"[" * 50_000 + b"Int" + b"]" * 50_000 + b" }",
    "deep JSON": b"[" * 200_000,
    "unknown type": b"type Query { a: Nowhere }",
    "no queries": b"type Other { a: Int }",
    "many tokens": b"type Query { " + b"a: Int " * 300_000 + b"}",
    "too large": b"#" * (16 * 1024 * 1024 + 1),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_schema_that_is_none_is_refused_in_words(content: bytes) -> None:
    with pytest.raises(ConfigError) as refused:
        read_schema(content, "")
    assert len(str(refused.value)) < 500


def test_a_wide_schema_is_bounded() -> None:
    many = " ".join(f"f{number}: T" for number in range(5_000))
    sdl = f"type T {{ {many} id: ID }} type Query {{ {many} }}"
    spec: GraphQLSpec = read_schema(sdl.encode(), "")
    assert max(len(each.selection) for each in spec.fields.values()) < 5_000
    assert len(read_graphql(spec).tools) == 5_000


def test_code_in_descriptions_stays_words() -> None:
    sdl = 'type Query { "\\u001b[2J x\\u0000" a: Int }'
    [tool] = read_graphql(read_schema(sdl.encode(), "")).tools
    assert "\x1b" not in tool.description


BAD_FIELDS: dict[str, Any] = {
    "ends our braces": "id } } { b",
    "a second operation": "{ id } mutation { b }",
    "not closed": "id { name",
    "empty": "",
    "too long": "x " * 20_000,
    "too deep": "a { " * 3_000,
    "no names": ["id", "a b"],
    "a directive in a name": ["id @include(if: true)"],
    "an empty list": [],
}


@pytest.mark.parametrize("fields", BAD_FIELDS.values(), ids=BAD_FIELDS.keys())
def test_fields_that_are_none_are_refused(fields: Any) -> None:
    field = GraphQLField(kind="query", name="a", selection="id", selector="fields")
    with pytest.raises(BadCall):
        request_content(field, {"fields": fields})


def test_add_says_what_a_graphql_server_offers(
    tracker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("TOOLFOLD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TRACKER_TOKEN", "s3cret-token")
    given = [
        "add",
        "graphql",
        tracker.url,
        "--name",
        "tracker",
        "--auth",
        "bearer=${TRACKER_TOKEN}",
    ]
    assert run_command([*given, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "(GraphQL): 9 operations" in said
    assert "7 only read, 2 change something" in said
    assert tracker.asked[0][0]["authorization"] == "Bearer s3cret-token"
    assert run_command(given) == 0
    [file] = (tmp_path / "home" / "config").glob("mcp.json")
    written: Any = parse_jsonc(file.read_bytes()).value
    assert written["mcpServers"]["tracker"]["graphql"] == tracker.url
    assert run_command(given) == 2
    assert "There is a server" in capsys.readouterr().err
