"""Which clients answer questions by themselves, so that asking them asks nobody.

Some clients declare that they can ask their user, and then decline or cancel at once. They are
known by the name that they give themselves, and told from people by how fast they answer.
"""

import json
from pathlib import Path
from typing import Final

from toolfold.storage.files import replace_file

CLIENTS_FILE: Final = "clients.json"
"""Its name among the files of state."""

AUTOMATIC_S: Final = 0.6
"""Nobody reads a question and answers it in less."""

_MAX_CLIENTS: Final = 100


class AskedClients:
    """What was learned of clients, in one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self) -> list[str]:
        """Return the clients that answer by themselves."""
        try:
            kept = json.loads(self._path.read_bytes())
            return [str(name) for name in kept["answer_by_themselves"]]
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def answers_by_itself(self, name: str) -> bool:
        """Whether a client was seen to do so."""
        return bool(name) and name in self.names()

    def learn(self, name: str) -> None:
        """Remember that it does. A disk that fails costs the memory only."""
        if not name or self.answers_by_itself(name):
            return
        names = [*self.names(), name[:100]][-_MAX_CLIENTS:]
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(self._path, json.dumps({"answer_by_themselves": names}).encode())
        except OSError:
            return
