"""Environment variables in the strings of an entry."""

import pytest
from config_home import unhurried
from hypothesis import given
from hypothesis import strategies as st

from toolfold.config.servers import expand, references_in, with_secrets
from toolfold.errors import ConfigError

ENVIRON = {"NAME": "ada", "EMPTY": "", "NESTED": "${NAME}", "_x1": "low"}
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("${NAME}", "ada"),
        ("a-${NAME}-${_x1}-b", "a-ada-low-b"),
        ("${env:NAME}", "ada"),
        ("${ABSENT:-else}", "else"),
        ("${env:ABSENT:-else}", "else"),
        ("${ABSENT:-}", ""),
        ("${NAME:-else}", "ada"),
        ("${EMPTY:-else}", ""),
        ("${ABSENT:-http://host:80/-}", "http://host:80/-"),
        ("${NESTED}", "${NAME}"),
        ("$NAME ${} ${1} ${NAME", "$NAME ${} ${1} ${NAME"),
        ("$${NAME}", "$ada"),
    ],
)
def test_a_variable_is_replaced_as_the_clients_do(text: str, expanded: str) -> None:
    assert expand(text, ENVIRON) == expanded


@pytest.mark.parametrize("text", ["${ABSENT}", "x${env:ABSENT}y", "${NAME}${ABSENT}"])
def test_an_absent_variable_without_default_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="ABSENT is not set"):
        expand(text, ENVIRON)


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("Bearer ${keyring:github}", ("keyring", "github")),
        ("${input:api-key}", ("input", "api-key")),
        ("${cmd:op read op://vault/item}", ("cmd", "op read op://vault/item")),
        ("${file:/run/secrets/x}", ("file", "/run/secrets/x")),
    ],
)
def test_a_secret_stays_a_mark_until_it_is_put_in(text: str, reference: tuple[str, str]) -> None:
    expanded = expand(text, ENVIRON)

    assert references_in(expanded) == (reference,)
    assert with_secrets(expanded, lambda _: "${NAME}").endswith("${NAME}")


def test_what_a_variable_holds_never_becomes_a_secret() -> None:
    expanded = expand("${A}", {"A": "${cmd:id}"})

    assert references_in(expanded) == ()
    assert expand("${file:-fallback}", {}) == "fallback"


@pytest.mark.parametrize("kind", ["keyring", "cmd", "file", "input"])
def test_a_secret_without_a_name_is_refused(kind: str) -> None:
    with pytest.raises(ConfigError, match="names nothing"):
        expand(f"${{{kind}: }}", ENVIRON)


@unhurried
@given(st.text())
def test_text_without_a_dollar_stays_as_it_is(text: str) -> None:
    text = text.replace("$", "")

    assert expand(text, ENVIRON) == text


@unhurried
@given(NAMES, st.text(), st.text().map(lambda text: text.replace("$", "")))
def test_a_value_is_put_in_whole_and_never_expanded_again(
    name: str, value: str, around: str
) -> None:
    text = f"{around}${{{name}}}{around}"

    assert expand(text, {name: value}) == f"{around}{value}{around}"


@unhurried
@given(NAMES, st.text().map(lambda text: text.replace("}", "")))
def test_a_default_stands_in_whole_for_an_absent_variable(name: str, default: str) -> None:
    if "${input:" not in default:
        assert expand(f"${{{name}:-{default}}}", {}) == default
