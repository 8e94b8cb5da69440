"""What a server listed, kept on disk by the hash of its configuration."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from toolfold.catalog.tool import ListedTool
from toolfold.errors import StoreError
from toolfold.storage.files import replace_file


class ListingCache:
    """Listings on disk, so that tools are known before their server is up."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def load(self, config_hash: str) -> tuple[ListedTool, ...] | None:
        """Return the listing last saved, or None. A damaged file counts as none."""
        try:
            entries = json.loads(self._path(config_hash).read_bytes())
            return tuple(ListedTool(**entry) for entry in entries)
        except (OSError, ValueError, TypeError):
            return None

    def save(self, config_hash: str, tools: Iterable[ListedTool]) -> None:
        """Save a listing whole, or not at all.

        Raises:
            StoreError: The cache directory cannot be written.
        """
        entries = [{slot: getattr(tool, slot) for slot in ListedTool.__slots__} for tool in tools]
        write_whole(self._path(config_hash), json.dumps(entries))

    def sibling(self, kind: str, config_hash: str) -> Path:
        """Return where something else that is known of the same server is kept."""
        return self._directory / kind / f"{config_hash[:32]}.json"

    def _path(self, config_hash: str) -> Path:
        return self.sibling("tools", config_hash)


def write_whole(path: Path, text: str) -> None:
    """Keep what can be had again: written whole or not at all, whoever else writes it too.

    Raises:
        StoreError: It cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(path, text.encode(), is_durable=False)
    except OSError as error:
        raise StoreError(f"Cannot write {path}: {error}") from error


def listed_tool(tool: Any) -> ListedTool:
    """Return one tool of the SDK's listing as ours."""
    hints, execution = tool.annotations, tool.execution
    return ListedTool(
        name=tool.name,
        description=tool.description or "",
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        read_only=bool(hints and hints.read_only_hint),
        destructive=hints.destructive_hint if hints else None,
        idempotent=bool(hints and hints.idempotent_hint),
        may_be_task=bool(execution and execution.task_support in {"optional", "required"}),
    )


def definition_size(tool: ListedTool) -> int:
    """Return about how many characters a tool's definition has."""
    schemas = (tool.input_schema, tool.output_schema)
    return len(tool.name) + len(tool.description) + sum(len(json.dumps(each)) for each in schemas)
