"""Find addresses of machines, and URLs that carry a login. Pure."""

import re
import string
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final

from toolfold.privacy.spans import Span, candidates

_OCTET: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4: Final = re.compile(
    rf"[0-9](?<![\w][0-9])(?<![\w][-.,][0-9])[0-9]{{0,2}}(?:\.{_OCTET}){{3}}(?![\w]|\.[0-9])"
)
_IPV6_CHARS: Final = "[0-9A-Fa-f:]"
_IPV6: Final = re.compile(
    rf"{_IPV6_CHARS}(?<![\w:.]{_IPV6_CHARS}){_IPV6_CHARS}{{2,}}+(?:(?:\.[0-9]{{1,3}}){{3}})?(?!\w)"
)
_LONGEST_IPV6: Final = 45
_MAC: Final = re.compile(
    r"[0-9A-Fa-f](?<![\w:-][0-9A-Fa-f])[0-9A-Fa-f]"
    r"(?:(?::[0-9A-Fa-f]{2}){5}|(?:-[0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{2}(?:\.[0-9A-Fa-f]{4}){2})"
    r"(?![\w:-])"
)
_VERSION: Final = re.compile(r"(?:version|release|build|\bv)\W{0,3}$", re.IGNORECASE)
_VERSION_CHARS: Final = 12
# A password may hold anything but blanks and quotes; the last @ before the host ends it.
_LOGIN_URL: Final = re.compile(
    r"://(?P<login>[^\s/?#@:\"'<>]{0,256}:[^\s/?#\"'<>@]{1,512}(?:@[^\s/?#\"'<>@]{1,256}(?=@))?)@"
    r"[^\s\"'<>]{1,2000}"
)
_SCHEME_MARKS: Final = string.ascii_letters + string.digits + "+.-"
_SCHEME_CHARS: Final = 20
_PUNCTUATION: Final = ".,;:!?)]}"


class NetworkDetector:
    """IP and MAC addresses, and URLs with a user and a password."""

    kinds = ("LOGIN_URL", "MAC", "IP")

    def find(self, text: str) -> list[Span]:
        """Return addresses that may lead to a person or a machine of theirs."""
        found: list[Span] = []
        if "." in text:
            found += candidates(_IPV4, text, _ipv4)
        if ":" in text:
            found += candidates(_IPV6, text, _ipv6)
        if ":" in text or "-" in text or "." in text:
            found += candidates(_MAC, text, _mac)
        if "://" in text:
            found += candidates(_LOGIN_URL, text, _login_url)
        return found


def _ipv4(match: re.Match[str]) -> Span | None:
    try:
        address = IPv4Address(match[0])
    except AddressValueError:
        return None
    before = match.string[max(0, match.start() - _VERSION_CHARS) : match.start()]
    if _is_nobodys(address) or match[0].startswith("255.") or _VERSION.search(before):
        return None
    return Span("IP", match.start(), match.end())


def _ipv6(match: re.Match[str]) -> Span | None:
    written = match[0] if match[0].endswith("::") else match[0].removesuffix(":")
    if len(written) > _LONGEST_IPV6 or not _is_ipv6_like(written):
        return None
    try:
        address = IPv6Address(written)
    except AddressValueError:
        return None
    return None if _is_nobodys(address) else Span("IP", match.start(), match.start() + len(written))


def _is_ipv6_like(written: str) -> bool:
    """Tell an address from `1::2` of a slice, `a::b` of a name and `12:30:00` of a clock."""
    groups = written.split(":")
    return len(groups) >= 3 and (
        len(groups) >= 6 or ("::" in written and any(len(group) >= 3 for group in groups))
    )


def _is_nobodys(address: IPv4Address | IPv6Address) -> bool:
    return address.is_loopback or address.is_unspecified


def _mac(match: re.Match[str]) -> Span | None:
    marks = set(match[0].lower()) - set(":-.")
    return None if marks in ({"0"}, {"f"}) else Span("MAC", match.start(), match.end())


def _login_url(match: re.Match[str]) -> Span | None:
    before = match.string[max(0, match.start() - _SCHEME_CHARS) : match.start()]
    start = match.start() - len(before) + len(before.rstrip(_SCHEME_MARKS))
    return Span("LOGIN_URL", start, match.start() + len(match[0].rstrip(_PUNCTUATION)))
