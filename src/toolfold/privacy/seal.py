"""Seal what a vault keeps: AES-256-GCM, with a key of its own for every scope."""

import hmac
import os
from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from toolfold.errors import StoreError

KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12


class Seal:
    """What belongs to one scope, sealed so that it fits nowhere else."""

    def __init__(self, master: bytes, scope: str) -> None:
        self.id = _derived(master, "scope", scope)[:16]
        self._cipher = AESGCM(_derived(master, "key", scope))

    def seal(self, plain: bytes, *, page: int) -> bytes:
        """Return what only this scope's key opens, and only as this page."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, plain, self._place(page))

    def open(self, sealed: bytes, *, page: int) -> bytes:
        """Return what was sealed.

        Raises:
            StoreError: It was changed, or stands in another place than it was written for.
        """
        nonce, body = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        try:
            return self._cipher.decrypt(nonce, body, self._place(page))
        except (InvalidTag, ValueError) as error:
            raise StoreError(
                f"Page {page} of a vault was changed since it was written, so nothing of that "
                "vault is used. Put a backup in its place, or have the vault forgotten."
            ) from error

    def _place(self, page: int) -> bytes:
        return self.id + page.to_bytes(8)


def fingerprint(master: bytes) -> bytes:
    """Return what tells one key from another and says nothing of it."""
    return _derived(master, "fingerprint", "")[:16]


def _derived(master: bytes, use: str, scope: str) -> bytes:
    message = f"toolfold vault 1\0{use}\0{scope}".encode("utf-8", "surrogatepass")
    return hmac.digest(master, message, sha256)
