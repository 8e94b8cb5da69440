"""Find personal data in a text, by detectors that are asked in one order. Pure."""

import re
from collections.abc import Sequence
from typing import Final

from toolfold.privacy.detectors.credentials import CredentialDetector
from toolfold.privacy.detectors.identities import IdentityDetector
from toolfold.privacy.detectors.network import AddressDetector, NetworkDetector
from toolfold.privacy.detectors.payments import PaymentDetector
from toolfold.privacy.detectors.phones import PhoneDetector
from toolfold.privacy.spans import Detector, Span, merge, without_escapes

_CREDENTIALS: Final = CredentialDetector()
_PERSONAL: Final[tuple[Detector, ...]] = (
    AddressDetector(),
    NetworkDetector(),
    PaymentDetector(),
    IdentityDetector(),
    PhoneDetector(),
)
# Nothing that these find can do without one of these; most short texts have none.
_POSSIBLE: Final = re.compile(r"[0-9@:=]|-----BEGIN|[\w-]{20}")


class Detectors:
    """The built-in detectors and others beside them, as one.

    Of two that claim the same place, the earlier one gets it; others come before the built-in ones.
    """

    def __init__(self, others: Sequence[Detector] = ()) -> None:
        self._others = tuple(others)
        self.kinds: tuple[str, ...] = tuple(
            dict.fromkeys(
                kind for each in (*others, _CREDENTIALS, *_PERSONAL) for kind in each.kinds
            )
        )
        self._ranks = {kind: rank for rank, kind in enumerate(self.kinds)}

    def find(self, text: str) -> list[Span]:
        """Return what any of them finds: spans that do not overlap, in the order of the text."""
        found = [span for detector in self._others for span in detector.find(text)]
        if _POSSIBLE.search(text):
            plain = without_escapes(text)
            found += _CREDENTIALS.find(text)
            found += [span for detector in _PERSONAL for span in detector.find(plain)]
        return merge(found, self.rank) if found else []

    def rank(self, kind: str) -> int:
        """Return which kind gets a place that two claim: the one of the lower rank."""
        return self._ranks.get(kind, len(self._ranks))


def find(text: str) -> list[Span]:
    """Return the personal data that the built-in detectors find, in the order of the text."""
    return _ALONE.find(text)


def masked(text: str) -> str:
    """Return a text with the kind of everything personal in its place. It does not come back."""
    parts, position = [], 0
    for kind, start, end in find(text):
        parts += [text[position:start], f"[{kind}]"]
        position = end
    return "".join((*parts, text[position:]))


_ALONE: Final = Detectors()
