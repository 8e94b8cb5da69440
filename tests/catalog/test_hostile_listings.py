"""Servers that list what no honest one would: each costs itself alone, and never the reader."""

import json
import unicodedata

import anyio
import pytest
from support import MakeApp, test_server

from toolfold.catalog.messagelines import parse_message
from toolfold.catalog.sanitize import plain, readable

CONNECT_S = 6
MENDED = ["surrogate", "surrogate-name", "deep-input", "deep-output", "names", "no-tools"]
FAULTS = {
    "huge": "one page has more than",
    "many": "one page has more than",
    "pages": "it has more than 200 pages",
    "slow-pages": "it did not come within 6 s",
    "silent": "it did not come within 6 s",
}


@pytest.mark.parametrize("mode", [*MENDED, "parameter", "steering", "long"])
async def test_the_other_tools_of_a_hostile_server_work(running: MakeApp, mode: str) -> None:
    servers = {"hostile": test_server("hostile", mode), "honest": test_server("null")}
    async with running(servers, connect_timeout_s=CONNECT_S) as toolfold:
        with anyio.fail_after(CONNECT_S + 10):
            works = await toolfold.run("import hostile\nhostile.good()")
            listing = await toolfold.run("import tools\nprint(tools.servers())")
            other = await toolfold.run("import honest\nhonest.echo(value='there')")

    assert works.success, works.text
    assert "heard" in works.text
    assert other.success, other.text
    assert_plain(listing.text)


@pytest.mark.parametrize("mode", FAULTS)
async def test_a_listing_without_end_is_a_named_fault_within_the_connect_limit(
    running: MakeApp, mode: str
) -> None:
    servers = {"hostile": test_server("hostile", mode), "honest": test_server("null")}
    async with running(servers, connect_timeout_s=CONNECT_S) as toolfold:
        with anyio.fail_after(CONNECT_S + 10):
            told = await toolfold.run("import hostile\nhostile.good()")
            other = await toolfold.run("import honest\nhonest.echo(value='there')")

    assert not told.success
    assert "The server 'hostile' cannot be used" in told.text
    assert FAULTS[mode] in told.text
    assert other.success, other.text


async def test_a_tool_with_a_bad_name_gets_a_usable_one_or_is_left_out_with_a_note(
    running: MakeApp,
) -> None:
    async with running({"hostile": test_server("hostile", "names")}) as toolfold:
        renamed = await toolfold.run(
            "import hostile\ntry:\n    hostile.class_()\nexcept RuntimeError as e:\n    print(e)"
        )
        listing = await toolfold.run("import tools\nprint(tools.servers())")

    assert "hostile.class_ failed: gnp.exe" in renamed.text  # the server was called
    assert "hostile: 2 tools\n" in listing.text
    assert "left out: a tool without a name" in listing.text
    assert "left out: b\\x1b[2J: its name is too long, or cannot be shown" in listing.text


@pytest.mark.parametrize("mode", ["steering", "refuses"])
async def test_nothing_of_a_server_steers_a_terminal_or_hides_from_its_reader(
    running: MakeApp, mode: str
) -> None:
    async with running({"hostile": test_server("hostile", mode)}) as toolfold:
        told = await toolfold.run("import tools\nprint(tools.describe('hostile'))")
        name = "bad" if mode == "steering" else "good"
        failed = await toolfold.run(f"import hostile\nhostile.{name}()")
        kept = [each.listed for each in toolfold.app.catalog.tools if each.module == "hostile"]

    assert_plain(told.text)
    assert not failed.success
    assert "gnp.exe" in failed.text
    assert_plain(failed.text)
    for tool in kept:
        assert_plain(tool.description)
        assert_plain(str(tool.input_schema.get("properties", {}).get("a")))
        assert_plain(str(tool.input_schema.get("properties", {}).get("default")))
    if mode == "steering":
        schemas = {each.name: each.input_schema for each in kept}
        assert schemas["bad"]["properties"]["line"] == {"enum": ["\r\n", "\n"]}  # values are data


def assert_plain(text: str) -> None:
    unseen = [c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Cs"} and c not in "\n\t"]
    assert unseen == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\x1b[31mred\x1b[0m b", "ared b"),
        ("\x1b]8;;http://evil\x07link\x1b]8;;\x07", "link"),
        ("\x9b2J\x00\x07\x08x", "x"),
        ("a\u202eb\u2066c\u200fd\u200be\ufefff", "abcdef"),
        ("tags\U000e0041\U000e007f", "tags"),
        ("one\r\ntwo\tthree", "one\ntwo\tthree"),
        ("half \ud800 pair", "half  pair"),
        ("नमस्ते می‌خواهم 👨‍👩‍👧 ❤️ é", "नमस्ते می‌خواهم 👨‍👩‍👧 ❤️ é"),
    ],
)
def test_plain_text_keeps_what_is_writing_and_nothing_else(text: str, expected: str) -> None:
    assert plain(text) == expected


def test_an_answer_with_half_a_pair_is_read_and_a_whole_pair_and_backslashes_stay() -> None:
    text = r'{"jsonrpc":"2.0","id":1,"result":{"a":"\ud800","b":"\ud83d\ude00","c":"\\ud800"}}'

    message = parse_message(text.encode())

    assert message.message.result == {"a": "\ufffd", "b": "\U0001f600", "c": "\\ud800"}


@pytest.mark.parametrize("levels", [300, 5_000])
def test_an_answer_that_is_nested_too_deeply_becomes_an_error_of_its_request(levels: int) -> None:
    text = '{"jsonrpc":"2.0","id":"x7","result":{"content":' + "[" * levels + "]" * levels + "}}"

    error = json.loads(readable(text.encode()))

    assert error["id"] == "x7"
    assert "nested too deeply" in error["error"]["message"]


@pytest.mark.parametrize("line", [b"starting", b'{"jsonrpc":"2.0","id":1,', b"{", b""])
def test_what_is_no_message_stays_none(line: bytes) -> None:
    assert readable(line) == line
