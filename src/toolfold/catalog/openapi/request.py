"""Arguments into the request that an operation asks for. Pure, but for the boundary of forms."""

import base64
import binascii
import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from toolfold.catalog.openapi.graphql import request_content
from toolfold.catalog.openapi.model import ApiOperation, ApiParameter, Body, Encoding
from toolfold.catalog.openapi.styles import in_header, in_path, plain, query_pairs, quoted
from toolfold.errors import BadCall
from toolfold.jsontypes import Json, JsonObject

_FORM: Final = "application/x-www-form-urlencoded"
_PATH_SAFE: Final = "/%:@!$&'()*+,;=~"
_UNSENDABLE: Final = re.compile(r"[\r\n\0]")
_MEDIA: Final = re.compile(r"[\w.+*-]+/[\w.+*-]+(?:\s*;\s*[\w.-]+=\"?[\w.:-]+\"?)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """One request, but for where its server is and who asks."""

    method: str
    target: str
    """The path and query, quoted."""
    headers: tuple[tuple[str, str], ...]
    content: bytes | None


def make_request(operation: ApiOperation, arguments: JsonObject) -> ApiRequest:
    """Return the request that `arguments` ask for.

    Raises:
        BadCall: A value cannot be sent where it belongs, or the body is missing.
    """
    headers = [("accept", operation.accept)]
    if operation.graphql is not None:
        given = _body_value(operation, operation.body, arguments) if operation.body else []
        asked = given[0] if given and isinstance(given[0], dict) else {}
        headers.append(("content-type", "application/json"))
        content = request_content(operation.graphql, asked)
        return ApiRequest(method="POST", target="", headers=tuple(headers), content=content)
    target = _target(operation, arguments)
    for parameter in _given(operation, arguments, "header"):
        value = _written(parameter, arguments) or in_header(
            arguments[parameter.argument], explode=parameter.explode
        )
        headers.append((parameter.name, _header(value, parameter.argument)))
    cookies = "; ".join(f"{name}={value}" for name, value in _pairs(operation, arguments, "cookie"))
    if cookies:
        headers.append(("cookie", cookies))
    body, media = _content(operation, arguments)
    if media:
        headers.append(("content-type", media))
    return ApiRequest(method=operation.method, target=target, headers=tuple(headers), content=body)


def _target(operation: ApiOperation, arguments: JsonObject) -> str:
    path, _, fixed = operation.path.partition("#")[0].partition("?")
    by_name = {each.name: each for each in operation.parameters if each.place == "path"}

    def fill(found: re.Match[str]) -> str:
        parameter = by_name[found[1]]
        value = arguments.get(parameter.argument)
        text = _written(parameter, arguments) or in_path(
            parameter.name, value, parameter.style, explode=parameter.explode
        )
        if not text or (value == "" and parameter.style == "simple"):
            raise BadCall(f"{parameter.argument!r} is part of the path and cannot be empty.")
        return text

    parts = re.split(r"(\{[^{}]*\})", path)
    filled = [
        re.sub(r"\{([^{}]*)\}", fill, part)
        if part.startswith("{")
        else quote(part, safe=_PATH_SAFE, errors="replace")
        for part in parts
    ]
    whole = "".join(filled)
    if any(segment in {".", ".."} for segment in whole.split("/")):
        raise BadCall("A value that is part of the path cannot be `.` or `..`.")
    query = [f"{key}={value}" for key, value in _pairs(operation, arguments, "query")]
    if fixed:
        query.insert(0, quote(fixed, safe=_PATH_SAFE + "?", errors="replace"))
    return f"{whole}?{'&'.join(query)}" if query else whole


def _given(operation: ApiOperation, arguments: JsonObject, place: str) -> Iterator[ApiParameter]:
    for parameter in operation.parameters:
        if parameter.place == place and parameter.argument in arguments:
            yield parameter


def _pairs(operation: ApiOperation, arguments: JsonObject, place: str) -> Iterator[tuple[str, str]]:
    for parameter in _given(operation, arguments, place):
        value = arguments[parameter.argument]
        if parameter.media:
            yield quoted(parameter.name), quoted(_written(parameter, arguments))
            continue
        yield from query_pairs(
            parameter.name,
            value,
            parameter.style,
            explode=parameter.explode,
            reserved=parameter.allow_reserved,
        )


def _written(parameter: ApiParameter, arguments: JsonObject) -> str:
    """Return a value that is written as content of some kind; "" where it goes by its style."""
    if not parameter.media:
        return ""
    value = arguments.get(parameter.argument)
    text = plain(value)
    if "json" in parameter.media:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return quoted(text) if parameter.place == "path" else text


def _header(value: str, argument: str) -> str:
    if _UNSENDABLE.search(value):
        raise BadCall(f"{argument!r} is sent as a header, which cannot hold line breaks.")
    return value.strip().encode("utf-8", "replace").decode("latin-1")


def _content(operation: ApiOperation, arguments: JsonObject) -> tuple[bytes | None, str]:
    body = operation.body
    if body is None:
        return None, ""
    given = _body_value(operation, body, arguments)
    if not given and not body.is_required:
        return None, ""
    value: Json = given[0] if given else {}
    media = body.media if _MEDIA.fullmatch(body.media) else "application/octet-stream"
    media = "application/json" if media in {"*/*", "application/*"} else media
    base = media.partition(";")[0].strip().lower()
    encodings = dict(body.encodings)
    if base == _FORM:
        return _form(value, encodings).encode(), media
    if base.startswith("multipart/"):
        boundary = secrets.token_hex(16)
        return _multipart(value, encodings, boundary), f"{base}; boundary={boundary}"
    if "json" in base:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"), media
    return _bytes(value, body.argument), media


def _body_value(operation: ApiOperation, body: Body, arguments: JsonObject) -> list[Json]:
    """Return what the body says; nothing where no argument is about it."""
    if body.argument:
        return [arguments[body.argument]] if body.argument in arguments else []
    sent: JsonObject = {name: arguments[name] for name in body.fields if name in arguments}
    if body.takes_others:
        elsewhere = {each.argument for each in operation.parameters}
        sent |= {name: each for name, each in arguments.items() if name not in elsewhere}
    return [sent] if sent else []


def _form(value: Json, encodings: dict[str, Encoding]) -> str:
    if not isinstance(value, dict):
        return quoted(value)
    pairs: list[tuple[str, str]] = []
    for name, each in value.items():
        encoding = encodings.get(name)
        if encoding is None and isinstance(each, dict):
            pairs.append((quoted(name), quoted(each)))  # as JSON
        else:
            encoding = encoding or Encoding()
            pairs += query_pairs(name, each, encoding.style, explode=encoding.explode)
    return "&".join(f"{key}={text}" for key, text in pairs)


def _multipart(value: Json, encodings: dict[str, Encoding], boundary: str) -> bytes:
    fields = value if isinstance(value, dict) else {"body": value}
    parts = []
    for name, each in fields.items():
        encoding = encodings.get(name, Encoding())
        items = each if isinstance(each, list) else [each]
        parts += [f"--{boundary}\r\n".encode() + _part(name, each, encoding) for each in items]
    return b"".join(parts) + f"--{boundary}--\r\n".encode()


def _part(name: str, value: Json, encoding: Encoding) -> bytes:
    head = f'Content-Disposition: form-data; name="{_escaped(name)}"'
    media = encoding.media
    if _is_file(value, encoding):
        assert isinstance(value, dict | str)  # noqa: S101
        given = value if isinstance(value, dict) else {}
        head += f'; filename="{_escaped(plain(given.get("filename") or name))}"'
        media = plain(given.get("content_type")) or media or "application/octet-stream"
    elif not media and isinstance(value, dict | list):
        media = "application/json"
    if media and _MEDIA.fullmatch(media):
        head += f"\r\nContent-Type: {media}"
    content = _bytes(value, name) if _is_file(value, encoding) else plain(value).encode()
    return head.encode() + b"\r\n\r\n" + content + b"\r\n"


def _is_file(value: Json, encoding: Encoding) -> bool:
    return encoding.is_binary and (isinstance(value, str) or _is_base64(value))


def _is_base64(value: Json) -> bool:
    return isinstance(value, dict) and isinstance(value.get("base64"), str)


def _bytes(value: Json, argument: str) -> bytes:
    if isinstance(value, dict) and isinstance(value.get("base64"), str):
        try:
            return base64.b64decode(str(value["base64"]), validate=True)
        except (ValueError, binascii.Error) as error:
            raise BadCall(f"{argument!r} is not valid base64: {error}.") from error
    return plain(value).encode("utf-8", "replace")


def _escaped(text: str) -> str:
    """Write a name so that it stays in its quotes, as browsers do."""
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A").replace("\0", "")
