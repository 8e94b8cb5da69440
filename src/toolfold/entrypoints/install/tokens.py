"""Tokens that stand in the entries of servers, and how they get out of there."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from toolfold.catalog.known_values import is_secret_name
from toolfold.entrypoints.install.entries import FoundServer
from toolfold.jsontypes import Json, JsonObject
from toolfold.storage.secrets import SecretStore

_PLACES: Final = ("env", "headers", "auth")
_MIN_CHARS: Final = 8
_SCHEME: Final = re.compile(r"((?:Bearer|Basic|Token)\s+)?(.*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class MovedTokens:
    """A server without tokens, and the secrets that take their place."""

    server: FoundServer
    values: Mapping[str, str] = field(repr=False)
    """By the name of a secret; also those that are kept already."""


def count_tokens(server: FoundServer) -> int:
    """Return how many tokens stand in an entry."""
    return sum(1 for _ in _tokens(server.entry))


def move_tokens(server: FoundServer, store: SecretStore) -> MovedTokens:
    """Return a server with references in the place of its tokens; nothing is kept yet."""
    entry = dict(server.entry)
    values: dict[str, str] = {}
    for place, key, scheme, token in _tokens(server.entry):
        name = _free_name(f"{server.name}/{key}", token, store, values)
        values[name] = token
        named = entry[place]
        assert isinstance(named, dict)  # noqa: S101
        entry[place] = {**named, key: f"{scheme}${{keyring:{name}}}"}
    return MovedTokens(replace(server, entry=entry), values)


def _tokens(entry: JsonObject) -> Iterator[tuple[str, str, str, str]]:
    """Yield where each token stands, under which key, what is before it, and the token."""
    for place in _PLACES:
        named = entry.get(place)
        for key, value in (named if isinstance(named, dict) else {}).items():
            scheme, token = _split(value)
            is_secret = place == "auth" or is_secret_name(key)
            if is_secret and len(token) >= _MIN_CHARS and "$" not in token:
                yield place, key, scheme, token


def _split(value: Json) -> tuple[str, str]:
    found = _SCHEME.fullmatch(value) if isinstance(value, str) else None
    return (found[1] or "", found[2]) if found else ("", "")


def _free_name(wanted: str, token: str, store: SecretStore, taken: Mapping[str, str]) -> str:
    """Return a name that no other value has."""
    base = re.sub(r"[^A-Za-z0-9_./@-]", "_", wanted)[:90].lstrip("./@-") or "token"
    kept, name, number = store.kept(), base, 1
    while name in taken or (name in kept and store.get(name) != token):
        number += 1
        name = f"{base}_{number}"
    return name
