"""Edits of TOML text: what is asked for changes, and no other byte."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from toolfold.entrypoints.install.tomledit import sections
from toolfold.entrypoints.install.tomltext import TomlText
from toolfold.errors import ConfigError

TABLE = ("mcp_servers",)
unhurried = examples(200)

# Each stands for a trap: brackets in strings, arrays over lines, quotes, headers in text.
STATEMENTS = [
    'model = "gpt"',
    "args = [\n  [1, 2],\n  # [no.header]\n  [3],\n]",
    'prompt = """\n[mcp_servers.fake]\ncommand = "x"\n"""',
    "path = 'C:\\[x]'",
    'quoted = "a # b [c]"',
    "inline = { a = [1], b = '#' }",
    "literal = '''\n[also.fake]\n'''",
    "when = 1979-05-27T07:32:00Z",
    "not = nan",
]
OTHERS = ["[profiles.fast]", '["quoted.name"]', "[[rules]]", "[ spaced . out ]"]
ENDS = ["\n", "  # why\n", "\n\n", "\n# alone\n\n"]


@st.composite
def configurations(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A text, and the names of the servers in it."""
    names = draw(st.lists(st.sampled_from(["a", "b", "c-d", "e.f"]), unique=True, max_size=4))
    headers = draw(st.lists(st.sampled_from(OTHERS), unique=True))
    blocks = [_block(draw, header) for header in headers]
    for name in names:
        quoted = f'"{name}"' if "." in name else name
        blocks.append(_block(draw, f"[mcp_servers.{quoted}]"))
        if draw(st.booleans()):
            blocks.append(f'[mcp_servers.{quoted}.env]\nKEY = "v"\n')
    blocks = draw(st.permutations(blocks))
    start = draw(st.sampled_from(["", "# first\n", 'top = "x"\n\n']))
    return start + "".join(blocks), names


def _block(draw: st.DrawFn, header: str) -> str:
    lines = draw(st.lists(st.sampled_from(STATEMENTS), unique=True, max_size=3))
    return "".join(line + draw(st.sampled_from(ENDS)) for line in [header, *lines])


@given(configurations(), st.data())
@unhurried
def test_servers_go_and_another_comes_and_all_other_tables_stay(
    configuration: tuple[str, list[str]], data: st.DataObject
) -> None:
    text, names = configuration
    before = TomlText.parse(text)
    gone = data.draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    own = before.render(TABLE, "toolfold", {"command": "toolfold", "args": ["mcp"]})

    after = before.edited(TABLE, gone, {"toolfold": own})

    kept = {name: value for name, value in before.servers(TABLE).items() if name not in gone}
    assert repr(dict(sorted(after.servers(TABLE).items()))) == repr(
        dict(sorted({**kept, "toolfold": {"command": "toolfold", "args": ["mcp"]}}.items()))
    )
    taken = [before.piece(TABLE, name) for name in gone]
    assert sorted(_lines(after.text, without=[own])) == sorted(_lines(text, without=taken))
    for name in kept:
        assert _said(after.piece(TABLE, name)) == _said(before.piece(TABLE, name))
    assert repr(_others(after)) == repr(_others(before))


def _said(piece: str) -> list[str]:
    return [line for line in piece.splitlines() if line.strip() and not line.startswith("#")]


def _others(document: TomlText) -> list[tuple[str, object]]:
    return [(key, value) for key, value in document.root.items() if key != "mcp_servers"]


def _lines(text: str, *, without: list[str]) -> list[str]:
    """The lines that say something and are not those of some pieces."""
    lines = [line for line in text.splitlines() if line.strip()]
    for line in "".join(without).splitlines():
        if line.strip():
            lines.remove(line)
    return lines


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { a = { command = "x" } }\n',
        '[mcp_servers]\na = { command = "x" }\n',
        '[mcp_servers]\na.command = "x"\n',
        'mcp_servers.a.command = "x"\n',
    ],
)
def test_servers_that_are_not_tables_of_their_own_are_refused(text: str) -> None:
    document = TomlText.parse(text)

    with pytest.raises(ConfigError, match="inline tables or dotted keys"):
        document.edited(TABLE, ["a"], {})


def test_a_header_is_told_from_what_looks_like_one() -> None:
    text = 'a = [\n  ["x"],\n]\nb = """\n[no]\n"""\n  [ real . "one" ]  # [no]\nc = 1\n[[two]]\n'

    found = sections(text)

    assert [section.path for section in found] == [("real", "one"), ("two",)]
    assert text[found[0].start : found[0].end] == '  [ real . "one" ]  # [no]\nc = 1\n'


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_mark_and_the_line_endings_stay(newline: str, mark: str) -> None:
    lines = ["[mcp_servers.a]", 'command = "x"', "", "[mcp_servers.b]", 'command = "y"', ""]
    before = TomlText.parse(mark + newline.join(lines))
    own = before.render(TABLE, "toolfold", {"command": "toolfold"})

    after = before.edited(TABLE, ["a"], {"toolfold": own})

    expected = ["[mcp_servers.toolfold]", 'command = "toolfold"', *lines[2:]]
    assert after.text == mark + newline.join(expected)


def test_a_table_is_added_behind_the_last_line_even_if_that_is_not_ended() -> None:
    before = TomlText.parse('model = "x"')

    after = before.edited(TABLE, [], {"t": before.render(TABLE, "t", {"command": 'a"b'})})

    assert after.text == 'model = "x"\n\n[mcp_servers.t]\ncommand = "a\\"b"\n'
    assert tomllib.loads(after.text)["mcp_servers"] == {"t": {"command": 'a"b'}}


def test_pieces_that_were_taken_out_can_be_put_back() -> None:
    text = (
        '[mcp_servers.a]\ncommand = "x" # why\n\n[mcp_servers.a.env]\nK = "v"\n\n[other]\nx = 1\n'
    )
    before = TomlText.parse(text)
    piece = before.piece(TABLE, "a")
    own = before.render(TABLE, "t", {"command": "toolfold"})

    folded = before.edited(TABLE, ["a"], {"t": own})
    back = folded.edited(TABLE, ["t"], {"a": piece})

    assert back.text == text
