"""The vaults of a process: opened when first needed, and opened again when one was forgotten."""

from pathlib import Path
from threading import Lock

from toolfold.privacy.detect import Detectors
from toolfold.privacy.detectors.custom import CustomDetector
from toolfold.privacy.keys import find_keyring
from toolfold.privacy.store import VaultStore
from toolfold.privacy.vault import Vault

Patterns = tuple[tuple[str, str], ...]


class Vaults:
    """Hands out vaults by scope. Blocks; to be used in a thread."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._opening = Lock()
        self._store: VaultStore | None = None
        self._vaults: dict[tuple[str, Patterns], tuple[int, Vault]] = {}

    def vault(self, scope: str, patterns: Patterns = ()) -> Vault:
        """Return the vault of a scope, as it is now, which finds these patterns too.

        Raises:
            ConfigError: A pattern cannot be used.
            StoreError: The vault cannot be opened.
        """
        with self._opening:
            store = self._opened()
            base = store.base(scope)
            known = self._vaults.get((scope, patterns))
            if known is None or known[0] != base:
                detectors = Detectors([CustomDetector(*pattern) for pattern in patterns])
                known = base, store.vault(scope, detectors=detectors)
                self._vaults[scope, patterns] = known
            return known[1]

    def forget(self, scope: str) -> int:
        """Erase what is kept for a scope; return how many values that were. Raises StoreError."""
        with self._opening:
            store = self._opened()
            count = len(store.vault(scope))
            store.forget(scope)
            return count

    def forget_unused(self, *, since: float) -> int:
        """Erase all that was not used since a time; return how many scopes that were."""
        with self._opening:
            return self._opened().forget_unused(since=since)

    def close(self) -> None:
        """Close the file, if it was opened."""
        with self._opening:
            if self._store is not None:
                self._store.close()
            self._store = None
            self._vaults.clear()

    def _opened(self) -> VaultStore:
        if self._store is None:
            store = VaultStore(self._directory, keyring=find_keyring())
            store.open()
            self._store = store
        return self._store
