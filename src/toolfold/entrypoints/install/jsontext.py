"""Servers in JSON with comments: Claude Code, Cursor, VS Code, and toolfold's own file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolfold.config.jsonc import parse_jsonc
from toolfold.entrypoints.install import jsonedit
from toolfold.entrypoints.install.servertext import Table
from toolfold.errors import ConfigError
from toolfold.jsontypes import Json, JsonObject

EMPTY = "{\n}\n"


@dataclass(frozen=True, slots=True)
class JsonText:
    """A document whose root is an object, without keys that are written twice."""

    text: str
    root: JsonObject

    @classmethod
    def parse(cls, text: str) -> "JsonText":
        """Read a document; an empty one counts as an empty object.

        Raises:
            ConfigError: It cannot be edited; the message leaves it to the caller to name the file.
        """
        text = text if text.strip() else EMPTY
        document = parse_jsonc(text.encode())
        if document.duplicates:
            twice = ", ".join(f"`{key}`" for key in document.duplicates)
            raise ConfigError(f"names {twice} twice: keep one of them")
        if not isinstance(document.value, dict):
            raise ConfigError("must hold a JSON object")
        return cls(text, document.value)

    def servers(self, table: Table) -> JsonObject:
        """Return the servers of a table by name."""
        value = self.root
        for key in table:
            inner = value.get(key)
            if inner is None:
                return {}
            if not isinstance(inner, dict):
                raise ConfigError(f"`{'.'.join(table)}` must be an object that names servers")
            value = inner
        return value

    def table_text(self, table: Table) -> str | None:
        """Return the object from `{` to `}`."""
        span = self._span(table)
        text = None if span is None else self.text[slice(*span)]
        return text if text and text.startswith("{") else None

    def with_table(self, table: Table, text: str | None) -> "JsonText":
        """Write the object anew, or take out the key that holds it."""
        span, parent = self._span(table), self._span(table[:-1])
        if span is not None and text is not None:
            return self._spliced(span, text)
        if parent is None or (span is None and text is None):
            return self
        around = self.text[slice(*parent)]
        if text is None:
            return self._spliced(parent, jsonedit.drop(around, table[-1]))
        member = jsonedit.member_text(table[-1], text)
        layout = jsonedit.find_layout(self.text, len(table) - 1)
        return self._spliced(parent, jsonedit.append(around, member, layout))

    def piece(self, table: Table, name: str) -> str:
        """Return one member of the table."""
        text = self.table_text(table) or EMPTY
        member = next(each for each in jsonedit.members(text) if each.name == name)
        return text[member.start : member.end]

    def render(self, table: Table, name: str, entry: Json) -> str:
        """Write a member with the indentation of this document."""
        layout = jsonedit.find_layout(self.text, len(table))
        return jsonedit.member_text(name, layout.render(entry))

    def edited(self, table: Table, remove: Sequence[str], add: Mapping[str, str]) -> "JsonText":
        """Exchange members of the table, which is made where it is absent."""
        text = self.table_text(table) or "{}"
        layout = jsonedit.find_layout(self.text, len(table))
        gone, after = list(remove), None
        for name, piece in add.items():
            if gone:
                place = name if name in gone else gone[0]
                gone.remove(place)
                text = jsonedit.swap(text, place, piece)
            else:
                text = jsonedit.append(text, piece, layout, after=after)
            after = name
        for name in gone:
            text = jsonedit.drop(text, name)
        edited = self.with_table(table, text)
        if _without(edited.root, table) != _without(self.root, table):
            raise ConfigError("is written in a way that toolfold cannot edit")
        return edited

    def _spliced(self, span: tuple[int, int], text: str) -> "JsonText":
        return JsonText.parse(self.text[: span[0]] + text + self.text[span[1] :])

    def _span(self, table: Table) -> tuple[int, int] | None:
        """Return where the value at these keys stands."""
        start, end = 0, len(self.text)
        value: Json = self.root
        for key in table:
            if not isinstance(value, dict) or key not in value:
                return None
            value = value[key]
            present = jsonedit.members(self.text[start:end])
            member = next(each for each in present if each.name == key)
            start, end = start + member.value, start + member.end
        return start, end


def _without(root: Json, table: Table) -> Json:
    if not table or not isinstance(root, dict):
        return None
    key, *below = table
    rest: JsonObject = {name: value for name, value in root.items() if name != key}
    return rest | {key: _without(root.get(key), tuple(below))} if below else rest
