"""Find addresses of machines. Pure."""

import re
from ipaddress import AddressValueError, IPv6Address
from typing import Final

from toolfold.privacy.spans import Span, candidates

_OCTET: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4: Final = re.compile(
    rf"[0-9](?<!\w.)(?<!\w-.)(?<![^\W\d_]/.)(?<![0-9]\..)[0-9]{{0,2}}(?:\.{_OCTET}){{3}}(?!\w|\.[0-9])"
)
_IPV6_CHARS: Final = "[0-9A-Fa-f:]"
_IPV6: Final = re.compile(
    rf"{_IPV6_CHARS}(?:(?<![\w:.].)|(?<=[G-Zg-z][:.].)|(?<=[G-Zg-z]\w:.)|(?<=[G-Zg-z]\w\w:.))"
    rf"{_IPV6_CHARS}{{2,}}+(?:(?:\.[0-9]{{1,3}}){{3}})?(?!\w)"
)
_MAX_IPV6: Final = 45
_MAC: Final = re.compile(
    r"[0-9A-Fa-f](?<![\w:-][0-9A-Fa-f])[0-9A-Fa-f]"
    r"(?:(?::[0-9A-Fa-f]{2}){5}|(?:-[0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{2}(?:\.[0-9A-Fa-f]{4}){2})"
    r"(?![\w:-])"
)
# What stands before numbers with dots that are no address.
_VERSION_WORDS: Final = ("version", "release", "build", "section", "chapter", "clause", "§", "v")
_VERSION_SIGNS: Final = ("==", ">=", "<=", "~=", "!=")
_VERSION_CHARS: Final = 12


class NetworkDetector:
    """IP and MAC addresses."""

    kinds = ("MAC", "IP")

    def find(self, text: str) -> list[Span]:
        """Return addresses that may lead to a person or a machine of theirs."""
        found: list[Span] = []
        if "." in text:
            found += candidates(_IPV4, text, _ipv4)
        if ":" in text:
            found += candidates(_IPV6, text, _ipv6)
        if ":" in text or "-" in text or "." in text:
            found += candidates(_MAC, text, _mac)
        return found


def _ipv4(match: re.Match[str]) -> Span | None:
    written = match[0]
    first = written.partition(".")[0]
    is_octet = int(first) < 256 and str(int(first)) == first
    is_nobodys = first in {"127", "255"} or written == "0.0.0.0"  # noqa: S104
    is_address = is_octet and not is_nobodys and not _is_version(match)
    return Span("IP", *match.span()) if is_address else None


def _is_version(match: re.Match[str]) -> bool:
    before = match.string[max(0, match.start() - _VERSION_CHARS) : match.start()]
    if before.endswith(_VERSION_SIGNS):
        return True
    said = before.lower().rstrip(" \t:=.,-\"'(")
    return said.endswith(_VERSION_WORDS) and not (said.endswith("v") and said[-2:-1].isalnum())


def _ipv6(match: re.Match[str]) -> Span | None:
    written = match[0] if match[0].endswith("::") else match[0].removesuffix(":")
    if len(written) > _MAX_IPV6 or not _is_ipv6_like(written):
        return None
    try:
        address = IPv6Address(written)
    except AddressValueError:
        return None
    is_nobodys = address.is_loopback or address.is_unspecified
    return None if is_nobodys else Span("IP", match.start(), match.start() + len(written))


def _is_ipv6_like(written: str) -> bool:
    """Tell an address from `1::2` of a slice, `bad::cafe` of a name and `12:30:00` of a clock."""
    groups = written.split(":")
    has_digit = any(map(str.isdigit, written))
    return (
        len(groups) >= 3
        and has_digit
        and (len(groups) >= 6 or ("::" in written and any(len(group) >= 3 for group in groups)))
    )


def _mac(match: re.Match[str]) -> Span | None:
    marks = set(match[0].lower()) - set(":-.")
    return None if marks in ({"0"}, {"f"}) else Span("MAC", match.start(), match.end())


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
