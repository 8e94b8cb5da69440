"""What is shown of commands, URLs and arguments, and what is masked."""

import pytest

from toolfold.config.harmless import MASK, address, argument, program, program_path, reference


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("npx", "npx"),
        ("/opt/bin/npx", "npx"),
        ("C:\\Tools\\npx.cmd", "npx.cmd"),
        ("TOKEN=x srv", MASK),
        ("TOKEN=a/b", MASK),
        ("srv --password x", MASK),
        ("", MASK),
    ],
)
def test_of_a_command_the_program_is_shown(command: str, name: str) -> None:
    assert program(command) == name
    assert program_path(command) == (MASK if name == MASK else command)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://example.org/mcp", "https://example.org/mcp"),
        ("http://[::1]:8000/v1/sse/", "http://[::1]:8000/v1/sse/"),
        ("https://${HOST}/mcp", "https://${HOST}/mcp"),
        ("${URL}", "${URL}"),
        ("https://x@example.org", "https://example.org"),
        ("https://user:x@example.org/mcp?x#x", "https://example.org/mcp?•••"),
        ("https://example.org/s/x/mcp", "https://example.org/•••"),
        ("https://example.org/MCP", "https://example.org/•••"),
        ("https://x/y@example.org", MASK),
        ("https://${HOST:-x}/mcp", MASK),
        ("https://example.org:x/mcp", "https://example.org/•••"),
        ("x", MASK),
    ],
)
def test_of_a_url_scheme_and_host_are_shown(url: str, text: str) -> None:
    assert address(url) == text


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("-y", "-y"),
        ("--read-only", "--read-only"),
        ("@scope/server-github@1.2.3", "@scope/server-github@1.2.3"),
        ("mcp-server-git@latest", "mcp-server-git@latest"),
        ("${HERE}", "${HERE}"),
        ("--key=x", "--key=•••"),
        ("-psecret", MASK),
        ("--S3cret", MASK),
        ("secret", MASK),
        ("A=x", MASK),
        ("/srv/x", MASK),
        ("--\nx", MASK),
    ],
)
def test_of_arguments_flags_and_packages_are_shown(word: str, text: str) -> None:
    assert argument(word) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("${A}", "${A}"),
        ("Bearer ${env:A}", "Bearer ${env:A}"),
        ("${A:-x}", "${A:-•••}"),
        ("${A:-x}${B}", "${A:-•••}"),
        ("${A}x", MASK),
        ("Basic ${A}", MASK),
        ("x", MASK),
    ],
)
def test_of_variables_the_name_is_shown(value: str, text: str) -> None:
    assert reference(value) == text
