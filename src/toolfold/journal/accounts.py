"""Read the ledger from the journal. Texts are counted when they are first asked for."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from toolfold.journal.ledger import (
    PASSED_AS_IT_IS,
    Account,
    KnownDefinitions,
    ServerDefinitions,
    ToolUse,
    read_definitions,
)
from toolfold.journal.runs import CALLS_BITS, DASHBOARD, RunKind, answer_text, code_text, tool_text
from toolfold.storage.tables import SqlTransaction
from toolfold.tokens import count_tokens

_RUNS: Final = """
    SELECT number, id, began_at, client, request, project, process, kind,
        coalesce(listings, '[]'), coalesce(shown, '')
    FROM beginnings JOIN ends USING (number) LEFT JOIN offers USING (number)
    WHERE number > ? AND client <> ? ORDER BY number LIMIT ?
"""
_ENDED: Final = """
    SELECT coalesce(max(number), 0), count(*), coalesce(min(number), 0)
    FROM ends WHERE number <= ?
"""
_MAX_INT: Final = (1 << 63) - 1
_CALLS: Final = """
    SELECT id, tool FROM calls WHERE id >= ? AND id < ? AND tool <> 'cached' ORDER BY id
"""
_TOKENS: Final = """
    SELECT id, part, tokens FROM tokens WHERE id > ? AND id <= ? OR id >= ? AND id < ?
"""
_TOKENS_OF_RUN: Final = "SELECT id, part, tokens FROM tokens WHERE id = ? OR (id >= ? AND id < ?)"
_ENDED_RUN: Final = "SELECT number FROM beginnings JOIN ends USING (number) WHERE id = ?"
_OF_RUN: Final = """
    SELECT code, code_sha256, reply, reply_sha256
    FROM beginnings JOIN ends USING (number) WHERE number = ?
"""
_OF_CALL: Final = """
    SELECT tool, arguments, arguments_sha256, answer, answer_sha256, error FROM calls WHERE id = ?
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """Every run that ended, oldest first."""

    all: tuple[Account, ...]
    cut: int
    """Of so many texts only the head was kept and counted: more was saved than is said."""


CountedText = tuple[int, str, int]
"""The key of a row, which of its texts, and the tokens of that."""


class NewAccounts(NamedTuple):
    """The accounts that were not read before."""

    accounts: Accounts
    is_anew: bool
    """Whether these are the first: what was read before counts no longer."""
    is_complete: bool = True
    """Whether there are no more."""
    counted: "tuple[CountedText, ...]" = ()
    """What was counted now, to be kept with `keep_counted`."""


class RunTokens(NamedTuple):
    """What one run came to, in tokens."""

    written: int
    """The program, as the model wrote it."""
    read: int
    """The reply."""
    direct: int
    """Its calls and their answers, which a model that calls tools itself writes and reads."""


class _Ended(NamedTuple):
    """Which runs have ended: the last of them, how many, and the first."""

    last: int
    total: int
    first: int


_NONE_ENDED: Final = _Ended(0, 0, 0)


class _Run(NamedTuple):
    number: int
    id: str
    at: float
    client: str
    request: str
    project: str
    process: int
    kind: RunKind
    listings: str
    shown: str

    @property
    def door(self) -> str:
        """Through which door it came."""
        if self.kind == "hook":
            return "hook"
        if self.client in {"cli", "http"}:
            return self.client
        if self.client.startswith("key:"):  # at /mcp a model saw our definitions
            return "http" if self.shown else "rest"
        return "rest" if self.client == "rest" else "mcp"

    @property
    def conversation(self) -> tuple[object, ...]:
        """What tells conversations apart; where the door does not, a day of a project is one."""
        if self.kind == "hook":
            return self.door, self.request
        if self.door == "mcp":
            return self.door, self.client or self.process
        return self.client, self.project, datetime.fromtimestamp(self.at, UTC).date()


class AccountReader:
    """Reads the accounts of a journal again and again, each of them once."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._conversations: dict[tuple[object, ...], KnownDefinitions] = {}
        self._ended = _NONE_ENDED

    def read(self, connection: SqlTransaction, most: int = _MAX_INT) -> NewAccounts:
        """Return what was not read before, the oldest `most`."""
        if tuple(connection.execute(_ENDED, (self._ended.last,)).fetchone()) != self._ended:
            self._forget()  # runs were pruned, or one ended after others that began later
        is_anew, before = self._ended == _NONE_ENDED, self._ended.last
        rows = connection.execute(_RUNS, (before, DASHBOARD, most)).fetchall()
        runs = [_Run(*row) for row in rows]
        is_complete = len(runs) != most
        ended = connection.execute(_ENDED, (_MAX_INT if is_complete else runs[-1].number,))
        self._ended = _Ended(*ended.fetchone())
        last = self._ended.last
        keys = before, last, before + 1 << CALLS_BITS, last + 1 << CALLS_BITS
        tokens = _Tokens(connection, connection.execute(_TOKENS, keys))
        servers = _Servers(connection)
        accounts = []
        for run in runs:
            known = self._conversations.setdefault(run.conversation, KnownDefinitions())
            accounts.append(_account(connection, run, tokens, servers, known))
        found = Accounts(all=tuple(accounts), cut=tokens.cut)
        return NewAccounts(found, is_anew, is_complete, tuple(tokens.fresh))


def run_tokens(connection: SqlTransaction, run_id: str) -> RunTokens | None:
    """Return what a run came to; None of one that has not ended."""
    found = connection.execute(_ENDED_RUN, (run_id,)).fetchone()
    if found is None:
        return None
    number: int = found[0]
    calls = number << CALLS_BITS, number + 1 << CALLS_BITS
    tokens = _Tokens(connection, connection.execute(_TOKENS_OF_RUN, (number, *calls)))
    written, read = tokens.of_run(number)
    keys = [key for key, _tool in connection.execute(_CALLS, calls).fetchall()]
    return RunTokens(written, read, sum(map(tokens.of_call, keys)))


def _account(
    connection: SqlTransaction,
    run: _Run,
    tokens: "_Tokens",
    servers: "_Servers",
    known: KnownDefinitions,
) -> Account:
    used: dict[str, ToolUse] = {}
    calls = run.number << CALLS_BITS, run.number + 1 << CALLS_BITS
    for key, tool in connection.execute(_CALLS, calls).fetchall():
        used[tool] = used.get(tool, ToolUse()).plus(tokens.of_call(key))
    written, read = tokens.of_run(run.number)
    direct = sum(use.tokens for use in used.values())
    sent = read if run.kind == "hook" else written + read
    if run.kind in PASSED_AS_IT_IS:  # nothing was saved but definitions
        sent = direct
    loaded, deferred = known.direct(servers.of(run.listings), used, run.kind)
    return Account(
        run=run.id,
        at=run.at,
        door=run.door,
        project=run.project,
        kind=run.kind,
        shown=known.shown(run.shown, servers.tokens(run.shown)),
        sent=sent,
        direct=direct,
        loaded=loaded,
        deferred=deferred,
        tools=used,
    )


class _Servers:
    """The definitions that runs had, each listing counted once."""

    def __init__(self, connection: SqlTransaction) -> None:
        self._texts: Mapping[str, str] = dict(connection.execute("SELECT id, text FROM listings"))

    def of(self, ids: str) -> Iterator[ServerDefinitions]:
        """Return those of a run."""
        for each in json.loads(ids):
            if each in self._texts:
                yield read_definitions(self._texts[each])

    def tokens(self, listing_id: str) -> int:
        """Return what all definitions of a listing come to."""
        text = self._texts.get(listing_id)
        return sum(each.loaded for each in read_definitions(text).tools.values()) if text else 0


class _Tokens:
    """The tokens of texts: as they were counted before, or counted now."""

    def __init__(self, connection: SqlTransaction, rows: Iterable[tuple[int, str, int]]) -> None:
        self.cut = 0
        self._connection = connection
        self._known = {(key, part): tokens for key, part, tokens in rows}
        self.fresh: list[CountedText] = []

    def of_run(self, number: int) -> tuple[int, int]:
        """Return what the model wrote for a run, as code, and what it read."""

        def texts() -> dict[str, tuple[str, bool]]:
            code, code_cut, reply, reply_cut = self._row(_OF_RUN, number)
            return {"written": (code_text(code), bool(code_cut)), "read": (reply, bool(reply_cut))}

        return self._count(number, texts)

    def of_call(self, key: int) -> int:
        """Return what a call and its answer come to."""

        def texts() -> dict[str, tuple[str, bool]]:
            tool, arguments, is_cut, answer, answer_cut, error = self._row(_OF_CALL, key)
            read = answer_text(answer) if answer is not None else error or ""
            return {
                "written": (tool_text(tool, arguments), bool(is_cut)),
                "read": (read, bool(answer_cut)),
            }

        return sum(self._count(key, texts))

    def _count(
        self, key: int, texts: Callable[[], Mapping[str, tuple[str, bool]]]
    ) -> tuple[int, int]:
        if (key, "written") not in self._known or (key, "read") not in self._known:
            for part, (text, is_cut) in texts().items():
                if (key, part) not in self._known:
                    self._add(key, part, text, is_cut=is_cut)
        return self._known[key, "written"], self._known[key, "read"]

    def _add(self, key: int, part: str, text: str, *, is_cut: bool) -> None:
        tokens = count_tokens(text)
        self._known[key, part] = tokens
        if is_cut:
            self.cut += 1  # its whole may be counted at this moment
        else:
            self.fresh.append((key, part, tokens))

    def _row(self, statement: str, key: int) -> Any:
        return self._connection.execute(statement, (key,)).fetchone()
