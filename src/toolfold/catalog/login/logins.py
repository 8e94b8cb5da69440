"""Logins of HTTP servers, kept on disk: one file each, closed to other users."""

import hashlib
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

import anyio

from toolfold.config.paths import Directories
from toolfold.config.servers import ServerConfig
from toolfold.errors import ConfigError, StoreError
from toolfold.storage.files import read_file, replace_file
from toolfold.storage.locks import try_lock

_LOCK_POLL_S: Final = 0.02
_MAX_LIFETIME_S: Final = 1e10
_EXPIRY_SLACK_S: Final = 2.0  # so that a token does not end on its way


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """What one server let us have on the user's behalf, and how to renew it."""

    url: str
    """The server that it is for, and no other."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None
    """In seconds since 1970; None if the server did not say."""

    scope: str | None = None
    """What was granted."""

    wanted_scope: str | None = None
    """What the server asked for since: the next login asks for it too."""

    resource: str | None = None
    """The resource indicator (RFC 8707) that renewals must carry."""

    token_endpoint: str
    revocation_endpoint: str | None = None
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    auth_method: str | None = None
    """How the client shows its secret at these endpoints, as RFC 7591 names it."""

    is_refused: bool = False
    """Whether the authorization server has refused to renew it."""

    def is_expired(self, now: float) -> bool:
        """Whether the access token has ended, as far as we were told."""
        return self.expires_at is not None and now >= self.expires_at - _EXPIRY_SLACK_S

    @property
    def can_renew(self) -> bool:
        """Whether renewing is worth a try."""
        return self.refresh_token is not None and not self.is_refused


class Logins:
    """The logins of one user, by server. Several processes may use the same directory."""

    def __init__(self, directories: Directories) -> None:
        self._directory = directories.data / "logins"

    def path(self, server: ServerConfig) -> Path:
        """Return where the login is kept; another URL is another server."""
        name = re.sub(r"[^A-Za-z0-9._-]", "_", server.name)
        return self._directory / f"{name}-{_digest(server.url)[:8]}.json"

    def load(self, server: ServerConfig) -> Login | None:
        """Return the login, or None. A damaged file counts as none: a new login replaces it."""
        try:
            content = read_file(self.path(server))
            login = None if content is None else _parse(content)
        except (ConfigError, ValueError, TypeError):
            return None
        return login if login is not None and login.url == server.url else None

    def save(self, server: ServerConfig, login: Login) -> None:
        """Write the file whole; to be called with the lock held.

        Raises:
            StoreError: It cannot be written.
        """
        path = self.path(server)
        try:
            replace_file(path, json.dumps(asdict(login), indent=2).encode())
        except OSError as error:
            raise StoreError(f"Cannot write the login to {path}: {error.strerror}.") from error

    def remove(self, server: ServerConfig) -> None:
        """Forget the login; to be called with the lock held.

        Raises:
            StoreError: The file cannot be removed.
        """
        path = self.path(server)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"Cannot remove the login {path}: {error.strerror}.") from error

    @asynccontextmanager
    async def locked(self, server: ServerConfig) -> AsyncIterator[None]:
        """Keep out whoever else would change this login: a renewal spends the refresh token.

        Raises:
            StoreError: The directory cannot be written.
        """
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._directory.chmod(0o700)
            lock = self.path(server).with_suffix(".lock").open("a")
        except OSError as error:
            raise StoreError(f"Cannot write to {self._directory}: {error.strerror}.") from error
        with lock:
            # The holder may be another process, so no event tells; and waiting would block.
            while not try_lock(lock.fileno()):  # noqa: ASYNC110
                await anyio.sleep(_LOCK_POLL_S)
            yield

    def stamp(self, server: ServerConfig) -> tuple[int, int, int] | None:
        """Return what changes whenever the file does, so that it need not be read again."""
        with suppress(OSError):
            status = self.path(server).stat()
            return status.st_ino, status.st_mtime_ns, status.st_size
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginState:
    """How it stands with the login of one server, from what is on disk."""

    status: Literal["unused", "absent", "valid", "ended"]
    """`unused`: the server is a program, or the user wrote its `Authorization` header.
    `absent`: there is no login; whether one is needed only the server can tell.
    `valid`: there is one, or it renews itself. `ended`: there was one.
    """
    expires_at: float | None = None
    renews_itself: bool = False

    def __str__(self) -> str:
        """Say it in a few words, after the server's name."""
        if self.status == "valid" and self.renews_itself:
            return "logged in, renewed by itself"
        if self.status == "valid":
            return (
                f"logged in until {shown_time(self.expires_at)}" if self.expires_at else "logged in"
            )
        return {"absent": "not logged in", "ended": "its login has ended"}.get(self.status, "")


def login_state(server: ServerConfig, directories: Directories) -> LoginState:
    """Say how it stands with the login of a server, without asking anybody."""
    if not server.may_log_in:
        return LoginState(status="unused")
    login = Logins(directories).load(server)
    if login is None:
        return LoginState(status="absent")
    is_over = login.is_refused or (login.is_expired(time.time()) and not login.can_renew)
    return LoginState(
        status="ended" if is_over else "valid",
        expires_at=login.expires_at,
        renews_itself=login.can_renew,
    )


def is_sendable(token: str) -> bool:
    """Whether a token can stand in a header."""
    return bool(token) and token.isascii() and token.isprintable()


def expiry(lifetime: object, now: float) -> float | None:
    """Return when a token ends of which a server says that it lasts so many seconds, if it does."""
    try:
        seconds = float(str(lifetime))
    except ValueError:
        return None
    return now + seconds if 0 <= seconds < _MAX_LIFETIME_S else None


def shown_time(timestamp: float) -> str:
    """Return a time as the user's clock shows it."""
    return datetime.fromtimestamp(timestamp, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def _parse(content: bytes) -> Login:
    """Read a login that we wrote.

    Raises:
        ValueError, TypeError: It is not one.
    """
    entries: Any = json.loads(content)
    known = {each.name for each in fields(Login)}
    login = Login(**{key: entries[key] for key in known.intersection(entries)})
    texts = (login.url, login.access_token, login.token_endpoint, login.client_id)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a text is missing")
    if not is_sendable(login.access_token):
        raise ValueError("the token cannot be sent")
    if not isinstance(login.expires_at, int | float | None):
        raise TypeError("the time is not a number")
    return login


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
