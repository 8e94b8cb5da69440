"""Servers in TOML: Codex, which keeps each as a table `[mcp_servers.NAME]`."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolfold.entrypoints.install import tomledit
from toolfold.entrypoints.install.servertext import Table
from toolfold.errors import ConfigError
from toolfold.jsontypes import JsonObject

_MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class TomlText:
    """A valid document; its servers can be edited where each has a header of its own."""

    text: str
    root: JsonObject

    @classmethod
    def parse(cls, text: str) -> "TomlText":
        """Read a document.

        Raises:
            ConfigError: It is not TOML; the message leaves it to the caller to name the file.
        """
        try:
            return cls(text, tomllib.loads(text.removeprefix(_MARK)))
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"is not valid TOML: {error}") from error
        except RecursionError as error:
            raise ConfigError("is nested too deeply") from error

    def servers(self, table: Table) -> JsonObject:
        """Return the servers of a table by name."""
        value = self.root.get(table[0], {})
        if not isinstance(value, dict):
            raise ConfigError(f"`{table[0]}` must be a table that names servers")
        return value

    def table_text(self, _table: Table, /) -> str | None:
        """Return nothing: the servers stand in tables of their own, apart from each other."""
        return None

    def with_table(self, _table: Table, _text: str | None, /) -> "TomlText":
        """Return the same text: there is no table as a whole."""
        return self

    def piece(self, table: Table, name: str) -> str:
        """Return the tables of one server, one behind the other."""
        found = tomledit.spans(self._body, (*table, name))
        return self._newline.join(_whole(self._body[start:end]) for start, end in found)

    def render(self, table: Table, name: str, entry: JsonObject) -> str:
        """Write a server whose keys hold strings and lists of strings."""
        lines = [f"[{'.'.join(map(_key, (*table, name)))}]"]
        lines += [f"{_key(key)} = {_value(value)}" for key, value in entry.items()]
        return "".join(line + self._newline for line in lines)

    def edited(self, table: Table, remove: Sequence[str], add: Mapping[str, str]) -> "TomlText":
        """Exchange tables."""
        self._require_headers(table)
        text = self._body
        gone = sorted(span for name in remove for span in tomledit.spans(text, (*table, name)))
        at = gone[0][0] if gone else len(text)
        for number, (start, end) in reversed(list(enumerate(gone))):
            keeps_gap = number == 0 and bool(add)
            text = text[:start] + text[end:] if keeps_gap else tomledit.cut(text, start, end)
        if add:
            pieces = self._newline.join(map(_whole, add.values()))
            text = tomledit.insert(text, at, pieces, self._newline)
        mark = self.text[: len(self.text) - len(self._body)]
        return self._checked(mark + text, table)

    def _require_headers(self, table: Table) -> None:
        """Refuse servers in inline tables or dotted keys: their text cannot be moved as a piece."""
        found = tomledit.sections(self._body)
        with_header = {each.path[1] for each in found if each.path[:1] == table and each.path[1:]}
        bare = [name for name in self.servers(table) if name not in with_header]
        if bare or any(each.path == table and each.statements for each in found):
            names = ", ".join(f"`{table[0]}.{name}`" for name in bare)
            raise ConfigError(
                f"keeps {names or f'`{table[0]}`'} in inline tables or dotted keys, which toolfold "
                f"does not edit: write each server as a table [{table[0]}.NAME]"
            )

    def _checked(self, text: str, table: Table) -> "TomlText":
        """Make sure that everything but the servers is what it was."""
        try:
            after = TomlText.parse(text)
        except ConfigError as error:
            raise ConfigError(f"cannot be edited: the result {error}") from error
        before, now = ({**each.root, table[0]: None} for each in (self, after))
        if repr(before) != repr({key: now[key] for key in before}) or before.keys() != now.keys():
            raise ConfigError(f"`{table[0]}` is written in a way that toolfold cannot edit")
        return after

    @property
    def _body(self) -> str:
        return self.text.removeprefix(_MARK)

    @property
    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"


def _whole(piece: str) -> str:
    return piece if piece.endswith("\n") else piece + "\n"


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if is_bare else json.dumps(name, ensure_ascii=False)


def _value(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
