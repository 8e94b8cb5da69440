"""The shapes of what tools returned, kept on disk by the hash of their server's configuration."""

import json
import logging
from collections import Counter
from pathlib import Path
from typing import Final

from toolfold.catalog.listing import write_whole
from toolfold.catalog.shapes import Shape, from_json, merge, render, shape_of, to_json
from toolfold.errors import StoreError
from toolfold.jsontypes import Json

_log = logging.getLogger(__name__)

_WELL_KNOWN: Final = 20
_EVERY: Final = 25


class ObservedShapes:
    """What the tools of one server were seen to return."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._shapes = self._load()
        self._seen: Counter[str] = Counter()
        self._is_changed = False

    def observe(self, tool: str, value: Json) -> None:
        """Learn from a result. Of a tool that is well known, only some are looked at."""
        self._seen[tool] += 1
        if self._seen[tool] > _WELL_KNOWN and self._seen[tool] % _EVERY:
            return
        shape, known = shape_of(value), self._shapes.get(tool)
        learned = shape if known is None else merge(known, shape)
        if learned != known:
            self._shapes[tool] = learned
            self._is_changed = True

    def line(self, tool: str) -> str | None:
        """Return what a tool was seen to return, as one line; None if it never did."""
        shape = self._shapes.get(tool)
        return render(shape) if shape is not None else None

    def save(self) -> None:
        """Write what was learned since the last time. A disk that fails costs the memory only."""
        if not self._is_changed:
            return
        self._is_changed = False
        entries = {tool: to_json(shape) for tool, shape in self._shapes.items()}
        try:
            write_whole(self._path, json.dumps(entries))
        except StoreError as error:
            _log.warning("%s", error)

    def _load(self) -> dict[str, Shape]:
        """Read the shapes; a damaged file counts as none."""
        try:
            entries = json.loads(self._path.read_bytes())
            return {str(tool): from_json(entry) for tool, entry in entries.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return {}
