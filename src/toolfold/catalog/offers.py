"""What a server offers beside tools: prompts and resources. Listed by it, kept on disk."""

import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import mcp_types as types
from mcp import Client, MCPError
from pydantic import BaseModel, ValidationError

from toolfold.catalog.listing import write_whole
from toolfold.catalog.names import words
from toolfold.catalog.sanitize import plain
from toolfold.catalog.stubs import cut
from toolfold.errors import StoreError

_log = logging.getLogger(__name__)

_MAX_PAGES: Final = 50
_MAX_ITEMS: Final = 1_000
_MAX_CHARS: Final = 1_000_000
_MAX_ABOUT_READ: Final = 2_000
_MAX_ABOUT_CHARS: Final = 80
_FEW_WORDS: Final = 2
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s")
_LOST: Final = frozenset({types.CONNECTION_CLOSED, types.REQUEST_TIMEOUT})

ItemT = TypeVar("ItemT", bound=BaseModel)
Fetch = Callable[[str | None], Awaitable[tuple[list[ItemT], str | None]]]
"""Fetches the page at a cursor: its items, and the cursor of the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """What one server offers beside tools."""

    prompts: tuple[types.Prompt, ...] = ()
    resources: tuple[types.Resource, ...] = ()
    templates: tuple[types.ResourceTemplate, ...] = ()
    capabilities: frozenset[str] = frozenset()
    """Which of `prompts`, `resources` and `completions` it has, even if it lists none now."""
    about: str = ""
    """What it says that it is for, in a few words."""


class KnownOffers:
    """What one server offers, as far as that is known, in this process or from an earlier one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._settled = anyio.Event()
        self.value = _load(path)

    @property
    def settled(self) -> anyio.Event:
        """Set when the server has said what it offers, or did not."""
        return self._settled

    async def learn(self, client: Client, *, timeout_s: float) -> bool:
        """Ask the server, unless it takes too long; return whether it offers something else."""
        before = self.value
        try:
            with anyio.fail_after(timeout_s):
                offers = await list_offers(client)
        except (MCPError, TimeoutError) as error:
            _log.info("what is offered beside tools is not known: %s", error)
        else:
            self._keep(offers)
        self.settle()
        return self.value != before

    def settle(self) -> None:
        """Let those go on who wait for an answer."""
        self._settled.set()
        self._settled = anyio.Event()

    def _keep(self, offers: Offers) -> None:
        if offers == self.value:
            return
        self.value = offers
        try:
            write_whole(self._path, json.dumps(_dump(offers)))
        except StoreError as error:
            _log.warning("%s", error)


async def list_offers(client: Client) -> Offers:
    """Ask a server for all that it offers; what it does not have is not asked for.

    A list that is not valid counts as empty: it must cost the server nothing else.

    Raises:
        MCPError: The connection was lost.
    """
    has = client.server_capabilities
    kinds = {"prompts": has.prompts, "resources": has.resources, "completions": has.completions}
    return Offers(
        prompts=await _listed(_prompts(client)) if has.prompts else (),
        resources=await _listed(_resources(client)) if has.resources else (),
        templates=await _listed(_templates(client)) if has.resources else (),
        capabilities=frozenset(kind for kind, capability in kinds.items() if capability),
        about=about_server(client.server_info, client.instructions),
    )


def about_server(info: types.Implementation | None, instructions: str | None) -> str:
    """Return what a server says that it is for: its description, its title, its instructions.

    Of each, the first sentence; where none says anything, its name.
    """
    name = info.name if info else ""
    told = [info.description, info.title] if info else []
    for text in (*told, instructions):
        lines = plain(text or "")[:_MAX_ABOUT_READ].split("\n")
        said = next((each for each in lines if len(each.lstrip("# ").split()) >= _FEW_WORDS), "")
        if set(words(said)) - {*words(name), "mcp", "server"} and not said.startswith("#"):
            return cut(_SENTENCE_END.split(said, maxsplit=1)[0].rstrip("."), _MAX_ABOUT_CHARS)
    return cut(plain(name), _MAX_ABOUT_CHARS)


def _prompts(client: Client) -> Fetch[types.Prompt]:
    async def fetch(cursor: str | None) -> tuple[list[types.Prompt], str | None]:
        page = await client.list_prompts(cursor=cursor)
        return page.prompts, page.next_cursor

    return fetch


def _resources(client: Client) -> Fetch[types.Resource]:
    async def fetch(cursor: str | None) -> tuple[list[types.Resource], str | None]:
        page = await client.list_resources(cursor=cursor)
        return page.resources, page.next_cursor

    return fetch


def _templates(client: Client) -> Fetch[types.ResourceTemplate]:
    async def fetch(cursor: str | None) -> tuple[list[types.ResourceTemplate], str | None]:
        page = await client.list_resource_templates(cursor=cursor)
        return page.resource_templates, page.next_cursor

    return fetch


async def _listed(fetch: Fetch[ItemT]) -> tuple[ItemT, ...]:
    """Return the items of all pages, as many as fit."""
    items: list[ItemT] = []
    room = _MAX_CHARS
    try:
        async for item in _pages(fetch):
            room -= len(item.model_dump_json(exclude_none=True))
            if room < 0 or len(items) == _MAX_ITEMS:
                _log.warning("a list of over %d items was cut at %d", len(items), len(items))
                break
            items.append(item)
    except ValidationError as error:
        _log.warning("a list of what is offered is not valid: %s", error.errors()[0]["msg"])
    except MCPError as error:
        if error.code in _LOST:
            raise
        _log.info("a list of what is offered was refused: %s", error)
    return tuple(items)


async def _pages(fetch: Fetch[ItemT]) -> AsyncIterator[ItemT]:
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        items, cursor = await fetch(cursor)
        for item in items:
            yield item
        if not cursor:
            return


def _dump(offers: Offers) -> dict[str, Any]:
    def dumped(items: tuple[BaseModel, ...]) -> list[Any]:
        return [item.model_dump(mode="json", by_alias=True, exclude_none=True) for item in items]

    return {
        "prompts": dumped(offers.prompts),
        "resources": dumped(offers.resources),
        "templates": dumped(offers.templates),
        "capabilities": sorted(offers.capabilities),
        "about": offers.about,
    }


def _load(path: Path) -> Offers | None:
    """Return what was kept, or None. A damaged file counts as none."""
    try:
        kept = json.loads(path.read_bytes())
        return Offers(
            prompts=tuple(map(types.Prompt.model_validate, kept["prompts"])),
            resources=tuple(map(types.Resource.model_validate, kept["resources"])),
            templates=tuple(map(types.ResourceTemplate.model_validate, kept["templates"])),
            capabilities=frozenset(kept["capabilities"]),
            about=str(kept["about"]),
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None
