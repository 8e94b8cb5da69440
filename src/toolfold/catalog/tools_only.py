"""What upstreams have in common that offer tools and nothing else: APIs and programs."""

from collections.abc import Callable
from pathlib import Path

import anyio
from anyio.abc import TaskStatus

from toolfold.catalog.large import LargeParts, MessageSizes
from toolfold.catalog.observed_shapes import ObservedShapes
from toolfold.catalog.offers import Offers
from toolfold.catalog.secrets import FilledServer, Redactor, ServerSecrets
from toolfold.catalog.upstream_request import CallSlots
from toolfold.catalog.watches import Tell
from toolfold.config.servers import ServerConfig, config_hash
from toolfold.errors import ConfigError, ToolFailed, UpstreamUnavailable


class ToolsOnly:
    """An upstream without prompts and resources; see `Upstream`."""

    cover_words: Callable[[str], str] = staticmethod(str)
    left_out: tuple[str, ...] = ()
    connections = 0

    def __init__(
        self,
        config: ServerConfig,
        *,
        cache_directory: Path,
        sizes: MessageSizes,
        secrets: ServerSecrets,
    ) -> None:
        self.config = config
        self.listeners: list[Callable[[], None]] = []
        self.on_connected: Callable[[], None] = lambda: None
        self.fault: str | None = None
        self.protocol: str | None = None
        digest = config_hash(config)
        self.shapes = ObservedShapes(cache_directory / "shapes" / f"{digest[:32]}.json")
        self.parts = LargeParts(sizes)
        self._secrets = secrets
        self._server: FilledServer | None = None
        self._turns = CallSlots(
            concurrency=config.concurrency, serialize_writes=config.serialize_writes
        )

    @property
    def name(self) -> str:
        """Its name in the configuration."""
        return self.config.name

    @property
    def known_offers(self) -> Offers | None:
        """Nothing beside tools."""
        return Offers()

    @property
    def is_learning(self) -> bool:
        """Never: there is nothing beside tools to learn of."""
        return False

    async def offers(self) -> Offers:
        """Return what it offers beside tools: nothing."""
        return Offers()

    async def watch(
        self,
        uri: str,
        tell: Tell,  # noqa: ARG002
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,  # noqa: ARG002
    ) -> None:
        """See `Upstream`: there is nothing to watch."""
        raise ToolFailed(f"{self.name} has no resources, and so no {uri}.")

    async def _filled(self) -> FilledServer:
        """Return it with its secrets.

        Raises:
            UpstreamUnavailable: One of them cannot be had.
        """
        if self._server is None:
            try:
                self._server = await self._secrets.filled()
            except ConfigError as error:
                raise UpstreamUnavailable(
                    f"The server {self.name!r} cannot be used: {error}"
                ) from error
        return self._server

    async def _look_for_secrets(self) -> None:
        """Note which secret is missing; the tools are known without any."""
        try:
            await self._secrets.filled()
        except ConfigError as error:
            self.fault = str(error)

    def _forget_secrets(self) -> None:
        self._secrets.forget()
        self._server = None

    @property
    def _redactor(self) -> Redactor | None:
        return None if self._server is None else self._server.redactor

    def _covered(self, words: str) -> str:
        return words if self._redactor is None else self._redactor.text(words)
