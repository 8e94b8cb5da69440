"""Values and failures as they leave by the REST API."""

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from toolfold.entrypoints.screen import for_people
from toolfold.errors import ToolfoldError, TooManyRequests
from toolfold.jsontypes import Json

STATUSES: Final[Mapping[str, int]] = {
    "bad_input": 400,
    "bad_call": 400,
    "not_found": 404,
    "unsupported_media_type": 415,
    "tool_failed": 422,
    "denied": 403,
    "needs_approval": 409,
    "rejected": 409,
    "in_doubt": 409,
    "too_many_requests": 429,
    "state_lost": 409,
    "question_refused": 422,
    "upstream": 502,
    "upstream_unavailable": 503,
    "login_failed": 503,
    "store": 503,
    "unrecorded": 503,
    "upstream_timeout": 504,
    "request_timeout": 504,
}
"""Of each code of `errors.py` that can get here; any other is our own failure."""

INTERNAL: Final = "Internal error. The output of `toolfold serve` has the details."

HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
    "x-frame-options": "DENY",
}


class UnsupportedMedia(ToolfoldError):
    """The body is of a kind that we do not read."""

    code = "unsupported_media_type"


class RequestTimedOut(ToolfoldError):
    """The answer took longer than a request may."""

    code = "request_timeout"


class JsonAnswer(Response):
    """A value as JSON, whatever is in it."""

    media_type = "application/json"

    def __init__(
        self, value: Any, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        headers = {**HEADERS, **(headers or {})}
        super().__init__(encode(value), status_code=status, headers=headers)


def failure(error: ToolfoldError) -> JsonAnswer:
    """Return the one shape that every failure has."""
    message = for_people(error) if error.code == "not_found" else str(error)
    headers = (
        {"retry-after": str(error.retry_after_s)} if isinstance(error, TooManyRequests) else None
    )
    return JsonAnswer(failure_json(error.code, message), STATUSES.get(error.code, 500), headers)


def failure_json(code: str, message: str) -> Json:
    """Return that shape as a value."""
    return {"error": {"code": code, "message": message}}


def encode(value: Any) -> bytes:
    """Write JSON that everybody can read: servers also send what it has no words for."""
    try:
        return _dumps(value).encode()
    except (ValueError, UnicodeEncodeError):  # not a number; half of a surrogate pair
        return json.dumps(_finite(value), allow_nan=False, separators=(",", ":")).encode()


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value
