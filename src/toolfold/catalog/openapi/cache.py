"""APIs kept on disk as they were read, so that a specification is read once."""

import hashlib
import json
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from toolfold.catalog.listing import write_whole
from toolfold.catalog.openapi.model import (
    Api,
    ApiOperation,
    ApiParameter,
    Body,
    Cursor,
    Encoding,
    GraphQLField,
    Scheme,
)
from toolfold.catalog.openapi.sources import SpecFiles, is_url
from toolfold.catalog.tool import ListedTool, SharedSchemas, without_shared
from toolfold.config.servers import ServerConfig
from toolfold.jsontypes import JsonObject

# Another number for every change of what is read out of a specification.
_FORMAT: Final = 3
_FRESH_S: Final = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptApi:
    """An API from the disk, and whether its specification is still the same."""

    api: Api
    is_fresh: bool


def kept_tools(server: ServerConfig, directory: Path) -> tuple[ListedTool, ...] | None:
    """Return the operations of an API as they were last read; None if that is not kept."""
    kept = ApiCache(directory, server).load()
    return None if kept is None else kept.api.tools


class ApiCache:
    """The API of one specification with one choice of variables."""

    def __init__(self, directory: Path, server: ServerConfig) -> None:
        identity = json.dumps([server.transport, server.spec, sorted(server.variables)])
        digest = hashlib.sha256(identity.encode()).hexdigest()[:32]
        self._path = directory / "openapi" / f"{digest}.json"

    def load(self) -> KeptApi | None:
        """Return what was kept last; None if there is nothing, or a file of it has changed.

        What came from the network may have changed since; after an hour it is no longer fresh.
        """
        try:
            stored = json.loads(self._path.read_bytes())
            if stored["format"] != _FORMAT or not _is_same(stored["digests"]):
                return None
            is_fresh = time.time() - stored["at"] < _FRESH_S or not is_url(stored["location"])
            return KeptApi(api=_restored(stored["api"]), is_fresh=is_fresh)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def save(self, api: Api, files: SpecFiles) -> None:
        """Keep an API.

        Raises:
            StoreError: The cache directory cannot be written.
        """
        digests = {
            location: hashlib.sha256(content).hexdigest()
            for location, content in files.contents.items()
        }
        stored = {
            "format": _FORMAT,
            "at": time.time(),
            "location": files.location,
            "digests": digests,
            "api": _stored(api),
        }
        write_whole(self._path, json.dumps(stored, separators=(",", ":")))


def _is_same(digests: dict[str, str]) -> bool:
    return all(
        is_url(location) or hashlib.sha256(Path(location).read_bytes()).hexdigest() == digest
        for location, digest in digests.items()
    )


def _stored(api: Api) -> JsonObject:
    kept: JsonObject = {
        slot.name: getattr(api, slot.name)
        for slot in fields(Api)
        if slot.name not in {"operations", "tools", "schemes"}
    }
    kept["operations"] = [asdict(each) for each in api.operations.values()]
    kept["schemes"] = [[name, asdict(scheme)] for name, scheme in api.schemes]
    kept["tools"] = [_stored_tool(tool) for tool in api.tools]
    return kept


def _stored_tool(tool: ListedTool) -> JsonObject:
    schemas = {
        slot: schema and without_shared(schema)
        for slot, schema in (
            ("input_schema", tool.input_schema),
            ("output_schema", tool.output_schema),
        )
    }
    return {slot: getattr(tool, slot) for slot in ListedTool.__slots__} | schemas


def _restored(kept: dict[str, Any]) -> Api:
    kept["sent"], kept["answered"] = SharedSchemas(kept["sent"]), SharedSchemas(kept["answered"])
    kept["tools"] = tuple(_restored_tool(each, kept) for each in kept["tools"])
    kept["operations"] = LazyOperations(kept["operations"])
    kept["schemes"] = tuple((name, Scheme(**_tuples(each))) for name, each in kept["schemes"])
    kept["security"] = tuple(map(tuple, kept["security"]))
    return Api(**_tuples(kept))


def _restored_tool(stored: dict[str, Any], kept: dict[str, Any]) -> ListedTool:
    if stored["input_schema"].get("additionalProperties") is not None:
        stored["input_schema"]["$defs"] = kept["sent"]
    if stored["output_schema"] is not None:
        stored["output_schema"]["$defs"] = kept["answered"]
    return ListedTool(**stored)


class LazyOperations(dict[str, ApiOperation]):
    """Operations by name, each made when it is first called: most never are."""

    def __init__(self, stored: list[dict[str, Any]]) -> None:
        super().__init__()
        self._stored = {each["name"]: each for each in stored}

    def __missing__(self, name: str) -> ApiOperation:
        operation = self[name] = _operation(self._stored[name])
        return operation

    def __contains__(self, name: object) -> bool:
        return name in self._stored

    def __len__(self) -> int:
        return len(self._stored)


def _operation(stored: dict[str, Any]) -> ApiOperation:
    whole = dict(stored)
    whole["parameters"] = tuple(ApiParameter(**each) for each in stored["parameters"])
    if stored["body"] is not None:
        encodings = tuple((name, Encoding(**each)) for name, each in stored["body"]["encodings"])
        whole["body"] = Body(**_tuples(stored["body"] | {"encodings": encodings}))
    if stored["cursor"] is not None:
        whole["cursor"] = Cursor(**_tuples(stored["cursor"]))
    if stored["graphql"] is not None:
        arguments = tuple(map(tuple, stored["graphql"]["arguments"]))
        whole["graphql"] = GraphQLField(**stored["graphql"] | {"arguments": arguments})
    if stored["security"] is not None:
        whole["security"] = tuple(map(tuple, stored["security"]))
    return ApiOperation(**_tuples(whole))


def _tuples(stored: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(each) if type(each) is list else each for key, each in stored.items()}
