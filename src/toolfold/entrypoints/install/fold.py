"""Move a client's servers to toolfold and put toolfold instead."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from toolfold.entrypoints.install.clients import ClientFile, InstallContext
from toolfold.entrypoints.install.entries import FoundServer, find_servers, variables_in
from toolfold.entrypoints.install.files import Files, naming, require_writable
from toolfold.entrypoints.install.jsontext import JsonText
from toolfold.entrypoints.install.own import free_name, own_entry, passing_on
from toolfold.entrypoints.install.records import (
    FileChange,
    FileRecords,
    MovedServer,
    digest_of,
    digest_of_text,
)
from toolfold.entrypoints.install.rules import RulesPlan, plan_rules
from toolfold.entrypoints.install.servertext import ServerText, require_servers, with_servers
from toolfold.entrypoints.install.switches import without_switched_off
from toolfold.entrypoints.install.target import Target
from toolfold.entrypoints.install.tokens import count_tokens, move_tokens
from toolfold.entrypoints.install.tomltext import TomlText
from toolfold.jsontypes import JsonObject
from toolfold.storage.secrets import SecretStore


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallPlan:
    """What will be done to one place; nothing has happened yet."""

    place: ClientFile
    was: str | None
    document: ServerText
    """The client's file as it shall be."""

    target: Target
    rules: RulesPlan
    servers: tuple[FoundServer, ...]
    """Those that move, each with its part of `moved`."""

    moved: tuple[MovedServer, ...]
    stays: tuple[FoundServer, ...]
    """Those that cannot move."""

    own: str
    """The name that our entry gets; empty where it is there already."""

    passed: tuple[str, ...]
    """Variables that our entry did not pass on to toolfold, and will."""

    keeps_servers: bool
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What becomes a secret, by its name."""

    @property
    def is_changed(self) -> bool:
        """Whether the client's file will be another."""
        return self.was is None or self.document.text != self.was

    def require_writable(self) -> None:
        """Find out before anything is changed whether the files could be replaced.

        Raises:
            ConfigError: One of them could not; the message names it.
        """
        if self.is_changed:
            require_writable(self.place.path)
        if self.target.is_changed:
            require_writable(self.target.path)

    def step(self) -> FileChange:
        """Return how to undo this."""
        return FileChange(
            before_sha256=None if self.was is None else digest_of_text(self.was),
            after_sha256=digest_of_text(self.document.text),
            tables=tuple((table, self.document.table_text(table)) for table in self.place.tables),
            own=self.own,
            moved=self.moved,
            made_target=self.target.was is None and self.target.is_changed,
            made_directory=not self.place.path.parent.exists(),
            keeps_servers=self.keeps_servers,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnEntry:
    """Our entry in a client's file, as it shall be and as it is."""

    entry: JsonObject
    there: FoundServer | None
    new_name: str
    """Empty where it is there already."""

    @property
    def added(self) -> dict[str, JsonObject]:
        """What is to be written, by name; nothing where it is right as it is."""
        if self.there is None:
            return {self.new_name: self.entry}
        return {} if self.entry == self.there.written else {self.there.name: self.entry}

    @property
    def passed(self) -> tuple[str, ...]:
        """Variables that it did not pass on to toolfold, and will."""
        before = self.there.written if self.there else None
        known = before.get("env_vars") if isinstance(before, dict) else None
        now = self.entry.get("env_vars")
        names = [name for name in now if isinstance(name, str)] if isinstance(now, list) else []
        return tuple(name for name in names if not isinstance(known, list) or name not in known)


@dataclass(frozen=True, slots=True)
class Installer:
    """Plans changes of clients and makes them."""

    context: InstallContext
    files: Files
    records: FileRecords

    @property
    def store(self) -> SecretStore:
        """Where tokens of entries go."""
        return SecretStore(self.context.directories.data)

    def plan(
        self,
        place: ClientFile,
        *,
        keep: bool,
        move_secrets: Callable[[int], bool] = lambda _count: False,
    ) -> InstallPlan:
        """Find out what is to be done; `move_secrets` decides about so many tokens of entries.

        Raises:
            ConfigError: A file that would be changed cannot be; nothing has happened.
        """
        was, document = read_document(place, self.files)
        with naming(place.path):
            found = find_servers(place, document)
        found = without_switched_off(found, place, self.context, self.files)
        servers = [] if keep else [each for each in found if each.is_movable]
        tokens: dict[str, str] = {}
        count = sum(map(count_tokens, servers))
        if count and move_secrets(count):
            made = [move_tokens(each, self.store) for each in servers]
            servers = [each.server for each in made]
            tokens = {name: value for each in made for name, value in each.values.items()}
        target, moved = self._take_over(place, servers, tokens)
        gone = {(each.table, each.name) for each in servers}
        rest = [each for each in found if (each.table, each.name) not in gone]
        own = self._own(place, rest, target)
        with naming(place.path):
            document = _folded(place, document, servers, own.added)
        plan = InstallPlan(
            place=place,
            was=was,
            document=document,
            target=target,
            rules=plan_rules(place, self.context, self.files),
            servers=tuple(servers),
            moved=moved,
            stays=() if keep else tuple(each for each in found if each.reason),
            own=own.new_name,
            passed=own.passed,
            keeps_servers=keep,
            tokens=tokens,
        )
        plan.require_writable()
        return plan

    def apply(self, plan: InstallPlan) -> None:
        """Make the changes in the order in which a crash loses nothing."""
        plan.rules.save(self.files)
        if not self.files.dry_run:
            for name, value in plan.tokens.items():
                self.store.put(name, value)
        if plan.is_changed:
            self.records.add(plan.place, plan.step(), before=plan.was)
        plan.target.save(self.files)
        if plan.is_changed:
            text = plan.document.text
            self.files.write(plan.place.path, text, was=plan.was, private=False)

    def _take_over(
        self, place: ClientFile, servers: Sequence[FoundServer], tokens: Mapping[str, str]
    ) -> tuple[Target, tuple[MovedServer, ...]]:
        target = Target.read(place.target, self.files)
        records = [self.records.load(place), *self.records.sharers(place)]
        ours = {alias for record in records for alias in record.own_aliases}
        moved: list[MovedServer] = []
        for server in servers:
            alias, is_there = target.alias(server.name, server.entry)
            is_ours = alias in ours or not is_there
            if not is_there:
                target = target.with_server(alias, server.entry)
            if is_ours:
                ours.add(alias)
            moved.append(
                MovedServer(
                    table=server.table,
                    name=server.name,
                    alias=alias,
                    digest=digest_of(target.servers()[alias]),
                    written_digest=digest_of(server.written),
                    is_ours=is_ours,
                    secrets=_names_in(server.entry, tokens),
                )
            )
        return target, tuple(moved)

    def _own(self, place: ClientFile, rest: Sequence[FoundServer], target: Target) -> OwnEntry:
        """Find out what our entry shall be; one that is there keeps what it says."""
        beside = [each for each in rest if each.table == place.tables[0]]
        there = next((each for each in beside if each.is_own), None)
        environ = self.context.environ
        entry = own_entry(place.client, environ)
        if there is not None and isinstance(there.written, dict):
            entry = there.written
        entry = passing_on(place.client, entry, variables_in(target.servers()), environ)
        new_name = "" if there else free_name({each.name for each in beside})
        return OwnEntry(entry=entry, there=there, new_name=new_name)


def _names_in(entry: JsonObject, tokens: Mapping[str, str]) -> tuple[str, ...]:
    text = json.dumps(entry, ensure_ascii=False)
    return tuple(name for name in tokens if f"${{keyring:{name}}}" in text)


def _folded(
    place: ClientFile,
    document: ServerText,
    servers: Sequence[FoundServer],
    own: dict[str, JsonObject],
) -> ServerText:
    """Exchange the servers that move for our entry, or for the other form that it gets."""
    for table in place.tables:
        added = own if table == place.tables[0] else {}
        gone = [each.name for each in servers if each.table == table]
        gone += [name for name in added if name in document.servers(table) and name not in gone]
        if gone or added:
            pieces = {name: document.render(table, name, entry) for name, entry in added.items()}
            expected = with_servers(document.servers(table), gone, added)
            document = document.edited(table, gone, pieces)
            require_servers(document, table, expected)
    return document


def read_document(place: ClientFile, files: Files) -> tuple[str | None, ServerText]:
    """Return the text of a client's file and the document it is; an absent one is empty.

    Raises:
        ConfigError: It cannot be read or edited; the message names it.
    """
    text = files.read(place.path)
    with naming(place.path):
        return text, parse_document(place, text or "")


def parse_document(place: ClientFile, text: str) -> ServerText:
    """Read a text as the client of this place does.

    Raises:
        ConfigError: It cannot be read; the message does not name the file.
    """
    return TomlText.parse(text) if place.path.suffix == ".toml" else JsonText.parse(text)
