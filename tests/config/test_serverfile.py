"""Entries of the files that people have, each read through the user's own file."""

import json
from pathlib import Path
from typing import Any

import pytest
from config_home import Place
from inline_snapshot import snapshot

from toolfold.config.serverfile import outline_servers
from toolfold.config.servers import LoginOptions, ServerConfig


def test_a_whole_stdio_entry_is_read(place: Place) -> None:
    place.environ = {"TOKEN": "s3cret"}
    server = place.server(
        {
            "type": "stdio",
            "command": "npx",
            "args": ["-y", "server-${KIND:-github}"],
            "env": {"GITHUB_TOKEN": "${TOKEN}", "PORT": 8080, "DEBUG": True, "GONE": None},
            "cwd": "/srv",
            "timeout": 60000,
            "alwaysLoad": True,
        }
    )

    assert server == ServerConfig(
        name="it",
        source=place.user_file,
        transport="stdio",
        command="npx",
        args=("-y", "server-github"),
        env=(("GITHUB_TOKEN", "s3cret"), ("PORT", "8080"), ("DEBUG", "true")),
        cwd=Path("/srv"),
        timeout_s=60.0,
    )


def test_a_whole_remote_entry_is_read(place: Place) -> None:
    place.environ = {"HOST": "example.org", "TOKEN": "s3cret"}
    server = place.server(
        {
            "type": "sse",
            "url": "https://${HOST}/sse",
            "headers": {"Authorization": "Bearer ${env:TOKEN}", "X-Version": 2},
            "timeout_s": 2.5,
        }
    )

    assert server == ServerConfig(
        name="it",
        source=place.user_file,
        transport="sse",
        url="https://example.org/sse",
        headers=(("Authorization", "Bearer s3cret"), ("X-Version", "2")),
        timeout_s=2.5,
    )


@pytest.mark.parametrize("scopes", ["read write", ["read", "write"]])
def test_what_an_entry_says_of_the_login_is_read(place: Place, scopes: object) -> None:
    place.environ = {"SECRET": "s3cret"}
    server = place.server(
        {
            "url": "https://example.org/mcp",
            "oauth": {
                "clientId": "app",
                "clientSecret": "${SECRET}",
                "callbackPort": 8123,
                "authServerMetadataUrl": "https://example.org/as.json",
                "scopes": scopes,
                "somethingElse": True,
            },
        }
    )

    assert server.oauth == LoginOptions(
        client_id="app",
        client_secret="s3cret",
        callback_port=8123,
        metadata_url="https://example.org/as.json",
        scopes=("read", "write"),
    )
    assert server.may_log_in


@pytest.mark.parametrize(
    ("oauth", "reason"),
    [
        ([], "in `oauth`: must be an object, not a list"),
        ({"clientId": 1}, "in `oauth`: `clientId` must be a string, not a number"),
        ({"callbackPort": 0}, "in `oauth`: `callbackPort` must be above 0 and below 10^12"),
        ({"callbackPort": 80000}, "in `oauth`: `callbackPort` must be a port, from 1 to 65535"),
        ({"scopes": 5}, "in `oauth`: `scopes` must be a list of strings, not a number"),
        (
            {"authServerMetadataUrl": "file:///etc"},
            "in `oauth`: `authServerMetadataUrl` must begin with http:// or https://",
        ),
    ],
)
def test_what_an_entry_says_of_the_login_is_checked(
    place: Place, oauth: object, reason: str
) -> None:
    entry = {"url": "https://example.org/mcp", "oauth": oauth}

    assert place.reasons(json.dumps({"mcpServers": {"it": entry}})) == [reason]


@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({"command": "x"}, "stdio"),
        ({"url": "http://localhost:1/mcp"}, "http"),
        ({"type": "http", "url": "http://h"}, "http"),
        ({"type": "streamable-http", "url": "http://h"}, "http"),
        ({"type": "streamableHttp", "url": "http://h"}, "http"),
        ({"transport": "streamable_http", "url": "http://h"}, "http"),
        ({"type": "sse", "url": "http://h"}, "sse"),
        ({"type": "http", "url": "HTTPS://h", "command": "ignored"}, "http"),
        ({"type": "stdio", "command": "x", "url": "ignored"}, "stdio"),
    ],
)
def test_the_transport_is_the_type_or_follows_from_the_keys(
    place: Place, entry: dict[str, Any], transport: str
) -> None:
    server = place.server(entry)

    assert server.transport == transport
    assert bool(server.command) == (transport == "stdio")
    assert bool(server.url) == (transport != "stdio")


@pytest.mark.parametrize("table", ["mcpServers", "servers", "mcp_servers"])
def test_the_table_has_the_name_that_each_client_gives_it(place: Place, table: str) -> None:
    place.write(place.user_file, json.dumps({table: {"a": {"command": "x"}}, "inputs": []}))

    assert [server.name for server in place.load().servers] == ["a"]


def test_tables_of_several_clients_are_united_and_the_first_counts(place: Place) -> None:
    tables = {
        "servers": {"a": {"command": "vscode"}, "b": {"command": "vscode"}},
        "mcpServers": {"a": {"command": "claude"}},
    }
    place.write(place.user_file, json.dumps(tables))

    commands = {server.name: server.command for server in place.load().servers}
    assert commands == {"a": "claude", "b": "vscode"}


@pytest.mark.parametrize(
    ("written", "started"),
    [
        ("npx", "npx"),
        ("/usr/bin/node", "/usr/bin/node"),
        ("./server", "{config}/server"),
        ("../bin/server", "{config}/../bin/server"),
        ("${DIR}/server", "/opt/server"),
        ("${REL:-bin}/server", "{config}/bin/server"),
    ],
)
def test_a_relative_command_starts_where_its_file_lies(
    place: Place, written: str, started: str
) -> None:
    place.environ = {"DIR": "/opt"}

    command = place.server({"command": written}).command

    assert command == started.format(config=place.user_file.parent)


def test_a_relative_working_directory_starts_where_its_file_lies(place: Place) -> None:
    assert place.server({"command": "x"}).cwd is None
    assert place.server({"command": "x", "cwd": "sub"}).cwd == place.user_file.parent / "sub"


@pytest.mark.parametrize("off", [{"disabled": True}, {"enabled": False}])
def test_a_disabled_server_is_left_out_and_needs_no_variable(
    place: Place, off: dict[str, bool]
) -> None:
    place.write_servers(place.user_file, a={"command": "${ABSENT}", **off}, b={"command": "x"})
    config = place.load()

    assert [server.name for server in config.servers] == ["b"]
    assert config.faults == ()


def test_toolfold_itself_is_left_out_without_a_word(place: Place) -> None:
    place.environ = {"BIN": "/opt/bin"}
    place.write_servers(
        place.user_file,
        a={"command": "${BIN}/toolfold", "args": ["mcp"], "env": {"X": "${ABSENT}"}},
        b={"command": "uvx", "args": ["toolfold", "mcp"]},
        c={"command": "uvx", "args": ["other"]},
    )
    config = place.load()

    assert [server.name for server in config.servers] == ["c"]
    assert config.faults == ()


WRONG_ENTRIES: dict[str, Any] = {
    "absent variable": {"command": "x", "env": {"TOKEN": "${MY_TOKEN}"}},
    "args no list": {"command": "x", "args": "-y"},
    "args of objects": {"command": "x", "args": ["-y", {}]},
    "both": {"command": "x", "url": "http://h"},
    "command no string": {"command": ["npx"]},
    "disabled no flag": {"command": "x", "disabled": "yes"},
    "empty command": {"command": " "},
    "env name": {"command": "x", "env": {"A=B": "1"}},
    "env no object": {"command": "x", "env": ["A=1"]},
    "env of lists": {"command": "x", "env": {"A": []}},
    "env file": {"command": "x", "envFile": ".env"},
    "half a character": {"command": "\ud800"},
    "headers helper": {"url": "http://h", "headersHelper": "cat token"},
    "hidden command": {"command": "${keyring:key}"},
    "odd secret": {"url": "http://h", "headers": {"A": "${input:a key}"}},
    "list": [],
    "neither": {"args": []},
    "null byte": {"command": "x", "args": ["a\0b"]},
    "null": None,
    "steers a terminal": {"type": "\x1b[2J", "command": "x"},
    "string": "npx",
    "timeout in seconds": {"command": "x", "timeout": 30},
    "timeout negative": {"command": "x", "timeout_s": -1},
    "timeout no number": {"command": "x", "timeout": "1000"},
    "timeout too large": {"command": "x", "timeout": 10**400},
    "type number": {"type": 1, "command": "x"},
    "type without its key": {"type": "http", "command": "x"},
    "url scheme": {"url": "ftp://h"},
    "websocket": {"type": "ws", "url": "wss://h"},
    "": {"command": "x"},
}


def test_each_wrong_entry_says_what_is_wrong_and_leaves_the_others_alone(place: Place) -> None:
    place.write_servers(place.user_file, good={"command": "x"}, **WRONG_ENTRIES)
    config = place.load()

    assert [server.name for server in config.servers] == ["good"]
    assert {fault.source for fault in config.faults} == {place.user_file}
    assert {getattr(fault, "name", None): fault.reason for fault in config.faults} == snapshot(
        {
            "": "a server needs a name",
            "absent variable": "the variable MY_TOKEN is not set and has no default",
            "args no list": "`args` must be a list of strings, not a string",
            "args of objects": "`args[1]` must be a string, not an object",
            "both": "has both `command` and `url`: add `type`, or take one out",
            "command no string": "`command` must be a string, not a list",
            "disabled no flag": "`disabled` must be true or false, not a string",
            "empty command": "`command` is missing or empty",
            "env file": "uses `envFile`, which toolfold does not read",
            "env name": "`env` names a variable 'A=B', which cannot exist",
            "env no object": "`env` must be an object of strings, not a list",
            "env of lists": "`env.A` must be a string, not a list",
            "half a character": "`command` holds half a character",
            "headers helper": "uses `headersHelper`, which toolfold does not read",
            "hidden command": "`command` cannot hold a secret: it is shown and kept on disk",
            "odd secret": "'a key' is no name for a secret: letters, digits and any of _ . / @ - "
            "are, at most 100 of them",
            "list": "must be an object, not a list",
            "neither": (
                "needs `command`, `url` for a remote server, `openapi` or `graphql` for an API, "
                "or `cli` for a program"
            ),
            "null": "must be an object, not null",
            "null byte": "`args[0]` holds a NUL, which no process can be given",
            "steers a terminal": (
                "the transport '\\x1b[2J' is not one of stdio, http, sse, openapi, graphql, cli"
            ),
            "string": "must be an object, not a string",
            "timeout in seconds": '`timeout` is in milliseconds: write "timeout_s": 30 for seconds',
            "timeout negative": "`timeout_s` must be above 0 and below 10^12",
            "timeout no number": "`timeout` must be a number, not a string",
            "timeout too large": "`timeout` must be above 0 and below 10^12",
            "type number": "`type` must be a string, not a number",
            "type without its key": "`url` must begin with http:// or https://",
            "url scheme": "`url` must begin with http:// or https://",
            "websocket": "the transport 'ws' is not one of stdio, http, sse, openapi, graphql, cli",
        }
    )


WRONG_FILES = {
    "empty": "",
    "broken": '{\n  "mcpServers": {\n    "a": {"command": "x"\n  }\n',
    "list": "[]",
    "no table": '{"a": {"command": "x"}}',
    "table no object": '{"mcpServers": []}',
}


def test_each_wrong_file_is_one_fault_that_says_what_is_wrong(place: Place) -> None:
    reasons = {name: place.reasons(text) for name, text in WRONG_FILES.items()}

    assert reasons == snapshot(
        {
            "empty": ["is empty"],
            "broken": ["is not valid JSON: line 5, column 1: Expecting ',' delimiter"],
            "list": ["must hold a JSON object with `mcpServers`"],
            "no table": ['has no `mcpServers`: write {"mcpServers": {"NAME": {…}}}'],
            "table no object": ["`mcpServers` must be an object that names servers"],
        }
    )


@pytest.mark.parametrize("text", ["{}", '{"mcpServers": {}}', '// none yet\n{"servers": {},}'])
def test_a_file_without_servers_is_no_fault(place: Place, text: str) -> None:
    assert place.reasons(text) == []


def test_a_file_with_a_mark_comments_and_trailing_commas_is_read(place: Place) -> None:
    text = (
        '\ufeff{"mcpServers": { // mine\n "a": {"url": "http://h//x", /* no */ "type": "http",},}}'
    )
    place.write(place.user_file, text)
    config = place.load()

    assert [server.url for server in config.servers] == ["http://h//x"]
    assert config.faults == ()


def test_a_server_written_twice_is_reported_and_the_last_one_counts(place: Place) -> None:
    text = '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y", "command": "z"}}}'
    place.write(place.user_file, text)
    config = place.load()

    assert [server.command for server in config.servers] == ["z"]
    assert sorted(fault.reason for fault in config.faults) == [
        "`mcpServers.a.command` is written twice; the last one counts",
        "`mcpServers.a` is written twice; the last one counts",
    ]


def test_an_unreadable_file_is_one_fault(place: Place) -> None:
    place.user_file.mkdir(parents=True)

    assert [str(fault) for fault in place.load().faults] == [
        f"{place.user_file}: is not a regular file"
    ]


def test_an_outline_shows_commands_as_written_and_nothing_that_steers_a_terminal() -> None:
    servers = {
        "github": {"command": "npx", "args": ["-y", "server github", "${TOKEN}"]},
        "crm": {"url": "https://example.org/${KEY}"},
        "sneaky\u202e\x1b[2J": {"command": "sh\n"},
        "broken": {"command": 1},
        "long": {"command": "x" * 300},
        "off": {"command": "x", "disabled": True},
        "toolfold": {"command": "toolfold", "args": ["mcp"]},
    }

    outline = outline_servers(json.dumps({"mcpServers": servers}).encode())

    assert outline == (
        "github: npx -y 'server github' '${TOKEN}'",
        "crm: https://example.org/${KEY}",
        "sneaky\\u202e\\x1b[2J: 'sh\\n'",
        "broken: (`command` must be a string, not a number)",
        "long: " + "x" * 194 + "…",
    )
