"""What servers ask the user, as the user may see it."""

import mcp_types as types

from toolfold.catalog.in_flight import read_question


def test_no_control_sequence_of_a_server_reaches_the_user() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string", "title": "\x1b[31mName"}}}
    form = types.ElicitRequestFormParams(message="Pay\x1b[2J\x07?\nNow", requested_schema=schema)
    page = types.ElicitRequestURLParams(
        message="\x9b2J", url="https://a.example/\x1b[2J", elicitation_id="1"
    )

    asked, opened = read_question("bank", form), read_question("bank", page)

    assert asked.message == "Pay?\nNow"
    assert asked.schema == {
        "type": "object",
        "properties": {"name": {"type": "string", "title": "Name"}},
    }
    assert (opened.message, opened.url) == ("", "https://a.example/")
