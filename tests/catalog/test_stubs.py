"""Schemas become stubs that Python parses, the checker accepts, and a model can afford to read."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic_monty
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from support import SHARED_DATA

from toolfold.catalog.binding import parameters_of
from toolfold.catalog.names import function_names, module_names, sandbox_name
from toolfold.catalog.stubs import brief, module_stub, render_stub, signature
from toolfold.catalog.tool import ListedTool, Tool

CATALOGUES = sorted((SHARED_DATA / "catalogue").glob("*.json"))
over_catalogues = pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.stem)
needs_catalogues = pytest.mark.skipif(
    not CATALOGUES, reason="The recorded catalogues are not on this machine."
)


def tools_of(server: str, listed: list[ListedTool]) -> list[Tool]:
    module = module_names([server])[server]
    functions = function_names(tool.name for tool in listed)
    return [
        Tool(server=server, module=module, function=functions[tool.name], listed=tool)
        for tool in listed
    ]


def tool_with(
    input_schema: Any, *, name: str = "save", description: str = "", output_schema: Any = None
) -> Tool:
    listed = ListedTool(
        name=name,
        description=description,
        input_schema=input_schema,
        output_schema=output_schema,
    )
    (tool,) = tools_of("files", [listed])
    return tool


def recorded(path: Path) -> list[Tool]:
    catalogue = json.loads(path.read_text())
    listed = [
        ListedTool(
            name=tool["name"],
            description=tool.get("description") or "",
            input_schema=tool["inputSchema"],
            output_schema=tool.get("outputSchema"),
        )
        for tool in catalogue["tools"]
    ]
    return tools_of(catalogue["server"], listed)


def type_of(schema: Any, **definitions: Any) -> str:
    """Return how one required parameter of that schema is typed for a model."""
    tool = tool_with({"properties": {"x": schema}, "required": ["x"], "$defs": definitions})
    function = ast.parse(render_stub(tool)).body[-1]
    assert isinstance(function, ast.FunctionDef)
    annotation = function.args.args[0].annotation
    assert annotation is not None
    return ast.unparse(annotation)


ISSUE = ListedTool(
    name="createIssue",
    description="""Open a new issue in a repository. Nobody is notified.

    Args:
        title (str): What it is about.
        body: All the "details", in C:\\new markdown
            with links

    Returns:
        The issue.
    """,
    input_schema={
        "type": "object",
        "properties": {
            "body": {"type": "string"},
            "labels": {"type": "array", "items": {"$ref": "#/$defs/Label"}},
            "perPage": {"type": "integer", "default": 30, "description": "How many. At once."},
            "state": {"enum": ["open", "closed"], "description": "(Optional) Wanted state"},
            "title": {"type": "string"},
            "owner": {"type": "string"},
        },
        "required": ["owner", "title"],
        "$defs": {
            "Label": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "color": {"type": ["string", "null"]}},
                "required": ["name"],
            }
        },
    },
    output_schema={
        "type": "object",
        "properties": {"url": {"type": "string"}, "@id": {"type": "integer"}},
        "required": ["url"],
    },
)


def test_a_model_reads_the_types_then_the_function_with_its_documentation() -> None:
    (tool,) = tools_of("github", [ISSUE])

    assert render_stub(tool) == snapshot('''\
class Label(TypedDict):
    name: str
    color: NotRequired[str | None]
Result = TypedDict('Result', {'url': str, '@id': NotRequired[int]})
def create_issue(owner: str, title: str, *, body: str | None = None, labels: list[Label] | None = None, perPage: int = 30, state: Literal['open', 'closed'] | None = None) -> Result:
    """Open a new issue in a repository. Nobody is notified. Returns: The issue.

    title: What it is about
    body: All the "details", in C:\\\\new markdown
    perPage: How many
    state: Wanted state
    """
''')  # noqa: E501


def test_the_checker_reads_a_module_without_documentation() -> None:
    assert module_stub(tools_of("github", [ISSUE])) == snapshot("""\
from typing import Any, Awaitable, Literal, NotRequired, TypedDict
from ty_extensions import Intersection
CreateIssueResult = TypedDict('CreateIssueResult', {'url': str, '@id': NotRequired[int]})
def create_issue(owner: str, title: str, *, body: str | None = None, labels: list[dict[str, Any]] | None = None, perPage: int | None = None, state: Literal['open', 'closed'] | None = None) -> Intersection[CreateIssueResult, Awaitable[CreateIssueResult]]: ...
createIssue = create_issue
""")  # noqa: E501


def test_a_search_hit_is_one_line() -> None:
    (tool,) = tools_of("github", [ISSUE])

    assert signature(tool) == snapshot(
        "github.create_issue(owner, title, body=…, labels=…, perPage=…, state=…)"
    )
    assert brief(tool) == snapshot(
        "github.create_issue(owner: str, title: str, body?: str, labels?: list[{name, color?}], "
        "perPage=30, …) -> {url, @id?}: Open a new issue in a repository."
    )


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "number"}, "x?: float"),
        ({"type": "integer", "default": 10}, "x=10"),
        ({"type": "boolean", "default": False}, "x=False"),
        ({"type": "string", "default": ""}, "x=''"),
        ({"type": "string", "default": "a default of many words"}, "x?: str"),
        ({"type": "array", "items": {"type": "string"}, "default": []}, "x?: list[str]"),
        ({"enum": ["asc", "desc"], "default": "asc"}, "x: 'asc'|'desc' = 'asc'"),
        ({"type": "integer", "description": "How many (default: 25)."}, "x=25"),
        ({"type": "integer", "description": "How many. Defaults to 25."}, "x=25"),
        ({"type": "number", "description": "Factor, default is 0.5"}, "x=0.5"),
        ({"type": ["boolean", "null"], "description": "Default: true"}, "x=True"),
        ({"type": "string", "description": 'Unit, default "km"'}, "x='km'"),
        ({"type": "integer", "description": "Defaults to 2.5 GB"}, "x?: int"),
        ({"type": "string", "description": "Defaults to 7 days ago"}, "x?: str"),
        ({"type": "integer", "description": "The default 10x zoom"}, "x?: int"),
        (True, "x?: Any"),
    ],
)
def test_an_optional_parameter_shows_its_default_in_a_hit(schema: Any, expected: str) -> None:
    assert brief(tool_with({"properties": {"x": schema}})) == f"files.save({expected})"


@pytest.mark.parametrize(
    ("keys", "required", "expected"),
    [
        (["entityName", "contents"], ["entityName", "contents"], "{entityName, contents}"),
        (["from", "to"], ["from"], "{from, to?}"),
        (["a", "b"], None, "{a, b}"),
        (["a", "b", "c", "d", "e"], [], "dict"),
        (["a, b"], [], "dict"),
        (["k" * 49], [], "dict"),
    ],
)
def test_objects_of_few_keys_show_them_in_a_hit(
    keys: list[str], required: list[str] | None, expected: str
) -> None:
    item: Any = {"type": "object", "properties": {key: {"type": "string"} for key in keys}}
    if required is not None:
        item["required"] = required
    of_one = tool_with({"properties": {"x": {"$ref": "#/$defs/i"}}, "required": ["x"],
                        "$defs": {"i": item}})  # fmt: skip
    of_many = tool_with({"properties": {"x": {"type": "array", "items": item}}, "required": ["x"]})

    assert brief(of_one) == f"files.save(x: {expected})"
    assert brief(of_many) == f"files.save(x: list[{expected}])"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "format": "date"}, "str"),
        ({"type": "number"}, "float"),
        ({"type": ["string", "null"]}, "str | None"),
        ({"anyOf": [{"type": "null"}, {"type": "boolean"}]}, "bool | None"),
        ({"oneOf": [{"const": "a"}, {"const": 2}, {"type": "null"}]}, "Literal['a', 2] | None"),
        ({"enum": ["a", None, True]}, "Literal['a', True] | None"),
        ({"enum": [1.5, {}]}, "Any"),
        ({"enum": [f"value {n}" for n in range(100_000)]}, "str"),
        ({"type": "object"}, "dict[str, Any]"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "dict[str, int]"),
        ({"type": "array", "items": {"type": "array", "items": {}}}, "list[list[Any]]"),
        ({"type": "array", "items": {"type": "string"}}, "list[str]"),
        ({"type": "array", "prefixItems": [{"type": "string"}], "items": False}, "list[Any]"),
        ({"allOf": [{"type": "string"}, {"maxLength": 3}]}, "str"),
        ({"type": "string", "anyOf": [{"minLength": 3}, {"pattern": "a"}]}, "str"),
        ({"$ref": "#/$defs/text"}, "str"),
        ({"$ref": "#/$defs/nowhere"}, "Any"),
        ({"$ref": "https://example.org"}, "Any"),
        ({"$ref": "#/$defs/loop"}, "Any"),
        (True, "Any"),
        (False, "Any"),
        ({"type": "strnig"}, "Any"),
        ({"type": 5}, "Any"),
        ("string", "Any"),
        ({"properties": {"a": {}}}, "X"),
    ],
)  # fmt: skip
def test_a_schema_has_its_type(schema: Any, expected: str) -> None:
    assert type_of(schema, text={"type": "string"}, loop={"$ref": "#/$defs/loop"}) == expected


def test_a_recursive_schema_becomes_a_type_that_names_itself() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    tool = tool_with({"properties": {"x": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}})

    assert "class Node(TypedDict, total=False):\n    next: Node\n" in render_stub(tool)


@pytest.mark.parametrize("key", ["a-b", "class", "__mangled", "ﬁ", ""])
def test_a_key_that_no_class_body_can_hold_is_written_as_text(key: str) -> None:
    tool = tool_with({}, output_schema={"type": "object", "properties": {key: {}}})

    assert f"Result = TypedDict('Result', {{{key!r}: Any}}, total=False)\n" in render_stub(tool)


@pytest.mark.parametrize(
    "schema", [{"type": "boolean"}, {"type": ["object", "null"]}, {"const": 1}]
)
def test_a_result_that_cannot_be_awaitable_too_is_any_to_the_checker(schema: Any) -> None:
    stub = module_stub([tool_with({"properties": {}}, output_schema=schema)])

    assert stub.endswith("def save() -> Intersection[Any, Awaitable[Any]]: ...\n")


def test_what_is_nested_too_deep_is_any() -> None:
    schema: Any = {"type": "string"}
    for _ in range(500):
        schema = {"type": "array", "items": schema}

    assert type_of(schema).endswith("list[Any]" + "]" * 8)


def test_a_stub_stays_small_whatever_the_schema() -> None:
    many = {f"key_{n}": {"type": "object", "properties": {"a": {}, "b-c": {}}} for n in range(5000)}
    wide = {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 100}}}
    everything = {"properties": many | {"wide": {"$ref": "#/$defs/a"}}} | wide
    tool = tool_with(everything, output_schema=everything, description="word " * 100_000)

    assert len(render_stub(tool)) < 20_000
    assert len(module_stub([tool])) < 20_000
    assert len(brief(tool)) < 200


def test_optional_parameters_are_by_keyword_and_none_leaves_them_out() -> None:
    tool = tool_with({"properties": {"a": {"type": "integer"}, "b": {}}, "required": ["b"]})

    assert "def save(b: Any, *, a: int | None = None) -> Any:" in render_stub(tool)


def test_an_open_schema_takes_any_keyword() -> None:
    tool = tool_with({"type": "object"})

    assert "def save(**others: Any) -> Any:" in render_stub(tool)
    assert signature(tool) == "files.save(**others)"


def test_types_of_different_tools_do_not_meet() -> None:
    def result(key: str) -> Any:
        inner = {"type": "object", "properties": {key: {}}}
        return {"type": "object", "properties": {"label": inner}}

    stub = module_stub(
        [
            tool_with({}, name="get", output_schema={"properties": {"user_label": result("a")}}),
            tool_with({}, name="get_user", output_schema=result("b")),
            tool_with({}, name="typed", output_schema={"properties": {"dict": result("c")}}),
        ]
    )

    names = [node.name for node in ast.parse(stub).body if isinstance(node, ast.ClassDef)]
    assert len(names) == len(set(names)) == 8
    assert "TypedDict" not in names


awkward = st.text(max_size=8) | st.sampled_from(
    ["type", "class", "__x", "a-b", "ﬁ", "\ud800", '"""', "\\", "", "from", "1", "Any", "\x00"]
)
scraps = st.none() | st.booleans() | st.integers() | st.floats() | awkward
kinds = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])
references = st.sampled_from(["#", "#/$defs/a", "#/properties/a", "#/nowhere", "other.json", "#a"])


def keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw schemas in which each keyword has a value that fits it, or one that does not."""
    several = st.lists(inner, max_size=3)
    named = st.dictionaries(awkward, inner, max_size=3)
    fitting = {
        "type": kinds | st.lists(kinds, max_size=3),
        "properties": named,
        "required": st.lists(awkward, max_size=3),
        "items": inner,
        "additionalProperties": inner,
        "enum": st.lists(scraps, max_size=3),
        "const": scraps,
        "anyOf": several,
        "oneOf": several,
        "allOf": several,
        "$ref": references,
        "$defs": st.fixed_dictionaries({"a": inner}),
        "default": scraps,
        "description": awkward,
    }
    return st.fixed_dictionaries(
        {}, optional={word: values | scraps for word, values in fitting.items()}
    )


schemas = st.recursive(scraps, lambda inner: keywords(inner) | inner, max_leaves=15)
tools = st.builds(
    lambda name, description, properties, output_schema: ListedTool(
        name=name,
        description=description,
        input_schema={"type": "object", "properties": properties, "$defs": {"a": properties}},
        output_schema=output_schema,
    ),
    name=awkward
    | st.sampled_from(["list", "str", "getUser", "get_user", "TypedDict", "_builtins"]),
    description=awkward | st.just('Ends in a "quote"'),
    properties=st.dictionaries(awkward, schemas, max_size=4),
    output_schema=st.none() | keywords(schemas),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(tools, max_size=4, unique_by=lambda tool: tool.name))
def test_the_stubs_of_any_schemas_are_python(listed: list[ListedTool]) -> None:
    named = tools_of("files", listed)

    for tool in named:
        ast.parse(render_stub(tool))
        assert "\n" not in brief(tool)
    tree = ast.parse(module_stub(named))
    defined = [
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ] + [
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    assert len(defined) == len(set(defined))
    assert {tool.function for tool in named} <= set(defined)


@needs_catalogues
@over_catalogues
def test_the_stub_of_every_real_tool_is_python_with_all_its_parameters(path: Path) -> None:
    for tool in recorded(path):
        function = ast.parse(render_stub(tool)).body[-1]

        assert isinstance(function, ast.FunctionDef)
        shown = {each.arg for each in (*function.args.args, *function.args.kwonlyargs)}
        assert shown == {each.identifier for each in parameters_of(tool).listed}


@needs_catalogues
@over_catalogues
def test_a_search_hit_of_every_real_tool_is_short(path: Path) -> None:
    assert all(len(brief(tool)) <= 185 for tool in recorded(path))


@pytest.fixture(scope="module")
def pool() -> Iterator[pydantic_monty.Monty]:
    with pydantic_monty.Monty(max_processes=1, request_timeout=60) as workers:
        yield workers


def findings(
    pool: pydantic_monty.Monty, module: str, stub: str, code: str
) -> list[tuple[int, str]]:
    """Check `code` against the stub of `module`; return each finding's line and rule."""
    external = {
        module: lambda: pydantic_monty.ExternalModule({}, stubs=stub),
        "checked": lambda: pydantic_monty.ExternalModule({}, stubs=""),
    }
    with pool.checkout(
        type_check=True, type_check_format="json", external_modules=external
    ) as session:
        try:
            snap = session.feed_start(f"import checked; {code}")
            while snap.function_name == "import_stubs":
                snap = snap.resume_auto()
        except pydantic_monty.MontyTypingError as error:
            reports = json.loads(error.display())
            return [(report["location"]["row"], report["code"]) for report in reports]
        assert snap.args == ("checked",), "the check ends where the first import begins"
        return []


def call_of(tool: Tool) -> str:
    """Write a call of `tool` with every parameter, whose values are of no known type."""
    parameters = parameters_of(tool)
    given = ["x" if each.required else f"{each.identifier}=x" for each in parameters.listed]
    return f"{tool.path}({', '.join(given)})"


@needs_catalogues
@over_catalogues
def test_the_checker_accepts_every_real_tool_and_refuses_what_is_not_there(
    pool: pydantic_monty.Monty, path: Path
) -> None:
    named = recorded(path)
    module, inner = named[0].module, sandbox_name(named[0].module)
    good = [f"import json, asyncio, {inner} as {module}", "x = json.loads('0')"]
    good += [call_of(tool) for tool in named]
    good += [f"(await {call_of(named[0])})['key']", f"await asyncio.gather({call_of(named[0])})"]
    good += [f"{module}.{tool.listed.name}" for tool in named if tool.listed.name.isidentifier()]
    bad = [f"{module}.no_such_tool()", call_of(named[0])[:-1].rstrip("(") + ", no_such=1)"]
    if not parameters_of(named[0]).listed:
        bad[1] = f"{named[0].path}(no_such=1)"

    found = findings(pool, inner, module_stub(named), "\n".join(good + bad))

    line = len(good) + 1
    assert found == [(line, "unresolved-attribute"), (line + 1, "unknown-argument")]


LOOSE = tool_with(
    {
        "properties": {
            "rows": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"id": {"type": "integer"}, "at": {"enum": ["a", "b"]}},
                    "required": ["id"],
                },
            },
            "point": {"type": "object", "properties": {"x": {"type": "number"}}},
            "weights": {"type": "array", "items": {"type": "number"}},
            "states": {"type": "array", "items": {"enum": ["open", "closed"]}},
            "mixed": {"type": "array", "items": {"type": ["string", "integer"]}},
            "state": {"enum": ["open", "closed"]},
        }
    }
)


def test_values_that_code_built_before_the_call_pass_the_check(pool: pydantic_monty.Monty) -> None:
    code = """
import files
rows = [{"id": n, "at": "a"} for n in range(3)]
files.save(rows=rows, point={**{"x": 1}}, weights=[n for n in range(3)])
states, mixed, point = ["open"], ["a"], {"x": 1}
files.save(states=states, mixed=mixed, point=point, state="open")
"""

    assert findings(pool, "files", module_stub([LOOSE]), code) == []


@pytest.mark.parametrize(
    "wrong", ["rows='a'", "rows={}", "point=[]", "states='open'", "state='opne'", "weights=1"]
)
def test_values_of_the_wrong_kind_do_not_pass_the_check(
    pool: pydantic_monty.Monty, wrong: str
) -> None:
    found = findings(pool, "files", module_stub([LOOSE]), f"import files\nfiles.save({wrong})")

    assert found == [(2, "invalid-argument-type")]


def test_a_tool_named_like_a_type_does_not_stand_in_for_it(pool: pydantic_monty.Monty) -> None:
    texts = {"properties": {"x": {"type": "array", "items": {"type": "string"}}}}
    stub = module_stub([tool_with(texts, name=name) for name in ("list", "str", "other")])

    code = "import files\nfiles.list(x=['a'])\nfiles.other(x=['a'])\nfiles.other(x=1)"

    assert findings(pool, "files", stub, code) == [(4, "invalid-argument-type")]
