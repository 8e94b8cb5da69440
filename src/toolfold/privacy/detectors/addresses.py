"""Find e-mail addresses. Pure."""

import re
from typing import Final

from toolfold.privacy.spans import Span, candidates

# A run of such characters is tried once, from its beginning, so a long one costs no more.
_LOCAL: Final = r"[\w.+'!#$*~^=-]"
_EMAIL: Final = re.compile(
    rf"{_LOCAL}(?<!{_LOCAL}.){_LOCAL}*+(?:@|(?=%40)%40)"
    r"(?:[\w-]{1,63}\.){1,8}(?:[^\W\d_]{2,24}|xn--[\w-]{2,59})(?![^\W_])",
    re.DOTALL,
)
# An account that everybody has: `git@github.com:owner/name`.
_NOBODYS: Final = {"git"}
# `icon@2x.png`: ends of files that no domain has.
_FILES: Final = frozenset(("png", "jpg", "jpeg", "gif", "svg", "webp", "css", "js", "json", "html"))

# `lodash@4.17.21.tgz`
_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+\.")


class AddressDetector:
    """E-mail addresses, also as they stand in URLs (`ada%40example.org`)."""

    kinds = ("EMAIL",)

    def find(self, text: str) -> list[Span]:
        """Return the addresses that have a name and a domain with a dot."""
        if "@" not in text and "%40" not in text:
            return []
        return list(candidates(_EMAIL, text, _email))


def _email(match: re.Match[str]) -> Span | None:
    written = match[0]
    local, domain = re.split("@|%40", written, maxsplit=1)
    # What stands before a name in code and URLs: `to=ada@…`, `'ada@…`.
    name = local.rpartition("=")[2].lstrip(".+'!#$*~^-")
    is_file = domain.rpartition(".")[2].lower() in _FILES or _VERSION.match(domain)
    if not name or name in _NOBODYS or is_file:
        return None
    return Span("EMAIL", match.start() + len(local) - len(name), match.end())
