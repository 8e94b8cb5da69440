"""Read the API of an entry, from the cache while its specification is the same."""

import logging

import anyio.to_thread

from toolfold.catalog.openapi.cache import ApiCache
from toolfold.catalog.openapi.model import Api
from toolfold.catalog.openapi.network import Resolve
from toolfold.catalog.openapi.operations import read_api
from toolfold.catalog.openapi.sources import is_url, read_spec
from toolfold.config.servers import ServerConfig
from toolfold.errors import ConfigError, StoreError

_log = logging.getLogger(__name__)


async def load_api(
    config: ServerConfig, cache: ApiCache, *, fresh: bool = False, resolve: Resolve | None = None
) -> Api:
    """Return the API of an entry: from the cache while its specification is the same.

    Raises:
        ConfigError: The specification cannot be used; the message does not name it.
    """
    kept = await anyio.to_thread.run_sync(cache.load)
    if kept is not None and kept.is_fresh and not (fresh and is_url(config.spec)):
        return kept.api
    try:
        document, files = await read_spec(config.spec, resolve=resolve)
    except ConfigError:
        if kept is None:
            raise
        return kept.api  # the network is away, and this is what it said last
    api = await anyio.to_thread.run_sync(
        lambda: read_api(document, variables=dict(config.variables))
    )
    try:
        await anyio.to_thread.run_sync(cache.save, api, files)
    except StoreError as error:
        _log.warning("%s", error)
    return api
