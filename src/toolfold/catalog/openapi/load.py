"""Read the API of an entry, from the cache while its specification is the same."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial

import anyio.to_thread

from toolfold.catalog.openapi.cache import ApiCache
from toolfold.catalog.openapi.graphql import introspection, read_schema
from toolfold.catalog.openapi.model import Api
from toolfold.catalog.openapi.network import Resolve
from toolfold.catalog.openapi.operations import read_api, read_graphql
from toolfold.catalog.openapi.sources import (
    SpecFiles,
    is_url,
    read_schema_file,
    read_spec,
)
from toolfold.config.servers import ServerConfig
from toolfold.errors import ConfigError, StoreError

_log = logging.getLogger(__name__)

Ask = Callable[[bytes], Awaitable[SpecFiles]]
"""Asks a GraphQL server for its schema."""

_Fetched = tuple[Callable[[], Api], SpecFiles]
"""What reads the API, and what it is read from."""


async def load_api(
    config: ServerConfig,
    cache: ApiCache,
    *,
    ask: Ask,
    fresh: bool = False,
    resolve: Resolve | None = None,
) -> Api:
    """Return the API of an entry: from the cache while its specification is the same.

    `ask` is how a GraphQL server is asked for its schema.

    Raises:
        ConfigError: The specification cannot be used; the message does not name it.
    """
    kept = await anyio.to_thread.run_sync(cache.load)
    if kept is not None and kept.is_fresh and not (fresh and is_url(config.spec)):
        return kept.api
    is_graphql = config.transport == "graphql"
    try:
        parse, files = await (_graphql(config, ask) if is_graphql else _openapi(config, resolve))
    except ConfigError:
        if kept is None:
            raise
        return kept.api  # the network is away, and this is what it said last
    api = await anyio.to_thread.run_sync(parse)
    try:
        await anyio.to_thread.run_sync(cache.save, api, files)
    except StoreError as error:
        _log.warning("%s", error)
    return api


async def _openapi(config: ServerConfig, resolve: Resolve | None) -> _Fetched:
    document, files = await read_spec(config.spec, resolve=resolve)
    return partial(read_api, document, variables=dict(config.variables)), files


async def _graphql(config: ServerConfig, ask: Ask) -> _Fetched:
    question = await anyio.to_thread.run_sync(introspection)
    is_remote = is_url(config.spec)
    files = await (ask(question) if is_remote else read_schema_file(config.spec))
    content, url = files.contents[files.location], files.location if is_remote else ""
    return lambda: read_graphql(read_schema(content, url)), files
