"""A process that conceals until it is killed: prints what it was told is kept."""

import sys
from pathlib import Path

from toolfold.privacy.store import VaultStore

if __name__ == "__main__":
    store = VaultStore(Path(sys.argv[1]))
    store.open()
    vault = store.vault("session-1")
    for number in range(int(sys.argv[3])):
        address = f"{sys.argv[2]}{number}@example.org"
        print(address, vault.conceal(address), flush=True)
