"""toolfold's own file of servers, which takes over those of the clients."""

from dataclasses import dataclass, replace
from pathlib import Path

from toolfold.config.serverfile import TABLES
from toolfold.entrypoints.install.entries import is_same
from toolfold.entrypoints.install.files import Files, naming
from toolfold.entrypoints.install.jsontext import JsonText
from toolfold.entrypoints.install.records import digest_of
from toolfold.entrypoints.install.servertext import require_servers, with_servers
from toolfold.jsontypes import JsonObject

_TABLE = ("mcpServers",)
_EMPTY = '{\n  "mcpServers": {}\n}\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The file as it was read, and as it shall be."""

    path: Path
    was: str | None
    document: JsonText

    @classmethod
    def read(cls, path: Path, files: Files) -> "Target":
        """Read the file, or begin one.

        Raises:
            ConfigError: It is there and cannot be used; the message names it.
        """
        text = files.read(path)
        with naming(path):
            target = cls(path=path, was=text, document=JsonText.parse(text or _EMPTY))
            target.servers()
        return target

    def servers(self) -> JsonObject:
        """Return the servers it names, as toolfold reads them."""
        found: JsonObject = {}
        for table in reversed(TABLES):
            found |= self.document.servers((table,))
        return found

    def alias(self, name: str, entry: JsonObject) -> tuple[str, bool]:
        """Return under which name a server is or would be here, and whether it is here."""
        servers, candidate, number = self.servers(), name, 1
        while candidate in servers:
            if is_same(servers[candidate], entry):
                return candidate, True
            number += 1
            candidate = f"{name}_{number}"
        return candidate, False

    def with_server(self, name: str, entry: JsonObject) -> "Target":
        """Return the file with one more server."""
        piece = self.document.render(_TABLE, name, entry)
        edited = self.document.edited(_TABLE, (), {name: piece})
        expected = with_servers(self.document.servers(_TABLE), (), {name: entry})
        require_servers(edited, _TABLE, expected)
        return replace(self, document=edited)

    def without_server(self, name: str) -> "Target":
        """Return the file without a server."""
        return replace(self, document=self.document.edited(_TABLE, (name,), {}))

    def has_unchanged(self, name: str, digest: str) -> bool:
        """Whether a server is here as an install left it."""
        servers = self.document.servers(_TABLE)
        return name in servers and digest_of(servers[name]) == digest

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left but what we write into a new file."""
        return self.document.text == _EMPTY

    @property
    def is_changed(self) -> bool:
        """Whether the file shall be other than it was."""
        return self.document.text != (self.was or _EMPTY)

    def save(self, files: Files) -> None:
        """Write the file if it is not as it was; it may hold secrets."""
        if self.is_changed:
            files.write(self.path, self.document.text, was=self.was, private=True)

    def remove(self, files: Files) -> None:
        """Take the file away."""
        files.write(self.path, None, was=self.was, private=True)
