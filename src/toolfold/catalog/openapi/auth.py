"""Who asks: the credentials of an entry put where the specification's schemes want them. Pure."""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from toolfold.catalog.openapi.model import Api, ApiOperation, Scheme

_WORDS = {"basic": ("basic",), "bearer": ("bearer", "oauth"), "key": ("key",)}


@dataclass(slots=True)
class Credentials:
    """What goes with a request."""

    headers: list[tuple[str, str]] = field(default_factory=list)
    query: list[tuple[str, str]] = field(default_factory=list)


def credentials_for(api: Api, operation: ApiOperation, auth: Mapping[str, str]) -> Credentials:
    """Return what proves who asks, for the first alternative of which everything is at hand.

    `auth` has values by name of a scheme, or by kind: `bearer`, `basic` (`user:password`) and
    `key`. Nothing is sent where the operation asks for nothing.
    """
    schemes = dict(api.schemes)
    alternatives = api.security if operation.security is None else operation.security
    if not alternatives and operation.security is None and not api.schemes:
        return default_credentials(auth)
    for alternative in alternatives:
        found = [(schemes.get(name), _value(name, schemes.get(name), auth)) for name in alternative]
        if all(scheme is not None and value for scheme, value in found):
            credentials = Credentials()
            for scheme, value in found:
                if scheme is not None and value is not None:
                    _apply(scheme, value, credentials)
            return credentials
    return Credentials()


def wanted_schemes(api: Api, operation: ApiOperation) -> list[str]:
    """Return the names of the schemes of which an operation wants one."""
    alternatives = api.security if operation.security is None else operation.security
    return [" and ".join(alternative) for alternative in alternatives if alternative]


def _value(name: str, scheme: Scheme | None, auth: Mapping[str, str]) -> str | None:
    if name in auth:
        return auth[name]
    if scheme is None:
        return None
    words = [word for word, kinds in _WORDS.items() if scheme.kind in kinds]
    return next((auth[word] for word in words if word in auth), None)


def _apply(scheme: Scheme, value: str, credentials: Credentials) -> None:
    if scheme.kind == "basic":
        encoded = base64.b64encode(value.encode()).decode()
        credentials.headers.append(("authorization", f"Basic {encoded}"))
    elif scheme.kind in {"bearer", "oauth"}:
        credentials.headers.append(("authorization", f"Bearer {value}"))
    elif scheme.kind == "key":
        _apply_key(scheme, value, credentials)
    else:
        credentials.headers.append(("authorization", value))


def _apply_key(scheme: Scheme, value: str, credentials: Credentials) -> None:
    if scheme.place == "query":
        credentials.query.append((quote(scheme.name, safe=""), quote(value, safe="")))
    elif scheme.place == "cookie":
        credentials.headers.append(("cookie", f"{scheme.name}={value}"))
    else:
        credentials.headers.append((scheme.name, value))


def default_credentials(auth: Mapping[str, str]) -> Credentials:
    """Return what is sent where the specification says nothing of credentials."""
    credentials = Credentials()
    for scheme, value in _unnamed(auth):
        _apply(scheme, value, credentials)
    return credentials


def _unnamed(auth: Mapping[str, str]) -> Iterator[tuple[Scheme, str]]:
    for kind in ("bearer", "basic"):
        if kind in auth:
            yield Scheme(kind="bearer" if kind == "bearer" else "basic"), auth[kind]
            return
