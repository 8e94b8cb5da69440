"""One rule turns every name into a Python identifier that guest code can write."""

import builtins
import keyword
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold.catalog.names import (
    OUR_MODULES,
    as_written,
    function_names,
    module_names,
    parameter_names,
    sandbox_name,
)

# Short names of few characters meet each other often; the rest is anything.
names = st.text(st.sampled_from("aAbB1_-. é中"), max_size=4) | st.text(max_size=200)


def one(named: dict[str, str]) -> str:
    (name,) = named.values()
    return name


@pytest.mark.parametrize(
    ("tool", "function"),
    [
        ("create_issue", "create_issue"),
        ("getUserInfo", "get_user_info"),
        ("API-post-page", "api_post_page"),
        ("HTTPServer2", "http_server2"),
        ("listPRs", "list_prs"),
        ("getUserIDsByName", "get_user_ids_by_name"),
        ("base64encode", "base64encode"),
        ("files/read.text  now", "files_read_text_now"),
        ("Café_löschen", "cafe_loschen"),
        ("__private__", "private"),
        ("a__b", "a_b"),
        ("2fa", "n_2fa"),
        ("import", "import_"),
        ("None", "none"),
        ("match", "match"),
        ("list", "list"),
        ("x" * 500, "x" * 80),
    ],
)
def test_a_tool_name_becomes_snake_case(tool: str, function: str) -> None:
    assert one(function_names([tool])) == function


def test_a_name_without_ascii_letters_is_called_after_what_it_is() -> None:
    assert one(function_names(["搜索"])).startswith("tool_")
    assert one(module_names(["搜索"])).startswith("server_")
    assert one(parameter_names([""])).startswith("arg_")


@pytest.mark.parametrize(
    ("server", "module"),
    [
        ("github", "github"),
        ("google-workspace", "google_workspace"),
        ("time", "time"),
        ("memory", "memory"),
        ("Tools", "tools"),
        ("list", "list"),
        ("import", "import_mcp"),
    ],
)
def test_a_server_keeps_its_name(server: str, module: str) -> None:
    assert one(module_names([server])) == module


def test_the_exact_spelling_keeps_the_plain_name() -> None:
    named = function_names(["getUser", "get-user", "get_user"])

    assert named["get_user"] == "get_user"
    assert named["getUser"].startswith("get_user_")
    assert named["get-user"].startswith("get_user_")


def test_without_an_exact_spelling_the_first_in_order_keeps_the_plain_name() -> None:
    named = function_names(["getUser", "get-user"])

    assert named["get-user"] == "get_user"
    assert named["getUser"].startswith("get_user_")


def test_a_made_up_name_does_not_take_the_name_of_another_tool() -> None:
    made_up = function_names(["getUser", "get_user"])["getUser"]

    named = function_names(["getUser", "get_user", made_up])

    assert named[made_up] == made_up
    assert named["getUser"].startswith(made_up)
    assert named["getUser"] != made_up


@given(st.lists(names))
def test_functions_and_parameters_are_distinct_identifiers(originals: list[str]) -> None:
    for named in (function_names(originals), parameter_names(originals)):
        assert named.keys() == set(originals)
        assert len(set(named.values())) == len(named)
        assert all(name.isidentifier() and name.isascii() for name in named.values())
        assert not any(keyword.iskeyword(name) for name in named.values())
        assert not any(name.startswith("_") for name in named.values())


@given(st.lists(names | st.sampled_from([*sorted(OUR_MODULES), *keyword.kwlist, *dir(builtins)])))
def test_modules_are_distinct_and_never_shadow(servers: list[str]) -> None:
    modules = module_names(servers).values()

    assert len(set(modules)) == len(set(servers))
    assert all(module.isidentifier() for module in modules)
    assert {*keyword.kwlist, "toolfold"}.isdisjoint(modules)
    in_sandbox = {sandbox_name(module) for module in modules}
    forbidden = {*sys.stdlib_module_names, *dir(builtins), *keyword.kwlist, "tools", "runs"}
    assert len(in_sandbox) == len(set(servers))
    assert forbidden.isdisjoint(in_sandbox)
    assert {as_written(name) for name in in_sandbox} == set(modules)


@given(st.lists(names), st.randoms(use_true_random=False))
def test_the_order_of_the_names_does_not_matter(originals: list[str], random) -> None:
    shuffled = random.sample(originals, len(originals))

    assert function_names(shuffled) == function_names(originals)


@given(st.lists(names))
def test_an_identifier_stays_as_it_is(originals: list[str]) -> None:
    plain = [name for name in function_names(originals).values() if "__" not in name]

    assert function_names(plain) == {name: name for name in plain}


@given(st.lists(names), names)
def test_an_unrelated_tool_renames_nothing(originals: list[str], added: str) -> None:
    before = function_names(originals)
    after = function_names([*originals, added])

    if one(function_names([added])) not in before.values():
        assert {name: after[name] for name in before} == before
