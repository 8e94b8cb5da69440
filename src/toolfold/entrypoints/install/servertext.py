"""The text of a client's configuration: which servers it names, and the same text with others."""

from collections.abc import Mapping, Sequence
from typing import Protocol, Self, TypeAlias

from toolfold.errors import ConfigError
from toolfold.jsontypes import Json, JsonObject

Table: TypeAlias = tuple[str, ...]
"""The keys from the root down to an object that names servers."""


class ServerText(Protocol):
    """A text that is edited piece by piece; a piece is a server as it is written there."""

    @property
    def text(self) -> str:
        """The whole text."""
        ...

    def servers(self, table: Table) -> JsonObject:
        """Return the servers of a table by name, and none where there is no such table.

        Raises:
            ConfigError: What stands there is no table of servers.
        """
        ...

    def table_text(self, table: Table, /) -> str | None:
        """Return a table as it is written; None where it is absent or not in one place."""
        ...

    def with_table(self, table: Table, text: str | None, /) -> Self:
        """Return the text with a table written so, or without it."""
        ...

    def piece(self, table: Table, name: str) -> str:
        """Return one server as it is written."""
        ...

    def render(self, table: Table, name: str, entry: JsonObject) -> str:
        """Write a server as a piece that fits into this text."""
        ...

    def edited(self, table: Table, remove: Sequence[str], add: Mapping[str, str]) -> Self:
        """Put the pieces `add` in the place of the first server of `remove`, and drop the others.

        Raises:
            ConfigError: The servers are written in a way that cannot be edited so.
        """
        ...


def with_servers(
    servers: Mapping[str, Json], remove: Sequence[str], add: Mapping[str, Json]
) -> JsonObject:
    """Return what a table must hold after an edit."""
    return {name: entry for name, entry in servers.items() if name not in remove} | dict(add)


def require_servers(text: ServerText, table: Table, expected: JsonObject) -> None:
    """Make sure that an edit did what was meant, before anything is written.

    Raises:
        ConfigError: It did not.
    """
    if text.servers(table) != expected:
        raise ConfigError(f"`{'.'.join(table)}` is written in a way that toolfold cannot edit")
