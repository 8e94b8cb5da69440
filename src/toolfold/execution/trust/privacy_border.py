"""Personal data at the border: real values go out to upstreams, placeholders come in."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Final

import anyio.to_thread

from toolfold.catalog.tool import ArtifactSink, Blob, LargeAnswer, Redact, Tool
from toolfold.config.config import Config
from toolfold.errors import Denied, ToolFailed, ToolfoldError
from toolfold.execution.trust.redaction import MAX_STREAM_BYTES, Chunks, redact_stream
from toolfold.jsontypes import Json, JsonObject
from toolfold.privacy.fields import FieldRule, FieldRules
from toolfold.privacy.placeholder_table import HiddenValue
from toolfold.privacy.reveal import may_hold_placeholders
from toolfold.privacy.store import Vaults
from toolfold.privacy.vault import Vault

_SHORT_CHARS: Final = 16_384  # a thread costs more than to look through fewer
_SHOWN: Final = 5
_UNSAID: Final = "application/octet-stream"


class PrivacyRules:
    """What a configuration says of personal data: whose answers are concealed, who receives it."""

    def __init__(self, config: Config, vaults: Vaults) -> None:
        settings = config.settings.privacy
        wanted = {"on", ""} if settings.mode == "on" else {"on"}
        self.concealed = frozenset(each.name for each in config.servers if each.privacy in wanted)
        """The servers whose answers are."""
        self.untrusted = frozenset(each.name for each in config.servers if each.untrusted)
        self._receives = {each.name: each.receives for each in config.servers}
        self._settings = settings
        self._vaults = vaults
        self._scope = config.namespace

    @cached_property
    def rules(self) -> FieldRules:
        """The fields that are personal. Raises ConfigError if one is not written as it must be."""
        fields = self._settings.fields
        return FieldRules([FieldRule(path, kind or None) for path, kind in fields])

    @property
    def is_on(self) -> bool:
        """Whether anything is concealed at all."""
        return bool(self.concealed)

    def is_upstream(self, server: str) -> bool:
        """Whether it is one of the servers that are configured, and not built in."""
        return server in self._receives

    def conceals(self, server: str) -> bool:
        """Whether what a server answers is concealed."""
        return server in self.concealed

    def receives(self, server: str) -> tuple[str, ...] | None:
        """Return the kinds that a server may receive; None for all."""
        return self._receives.get(server)

    async def vault(self) -> Vault:
        """Return the vault of the namespace, as it is now.

        Raises:
            ConfigError: A pattern or a field rule of the user's cannot be used.
            StoreError: It cannot be opened.
        """
        _ = self.rules
        return await anyio.to_thread.run_sync(
            self._vaults.vault, self._scope, self._settings.patterns
        )


@dataclass(frozen=True, slots=True)
class _Opaque:
    """What a vault does not look into: it holds nothing personal any more."""

    value: Json


class PrivacyBorder:
    """Conceals and reveals for one run. Where nothing is concealed it does nothing."""

    def __init__(self, privacy: PrivacyRules) -> None:
        self.is_on = privacy.is_on
        """Whether it does anything at all."""
        self._privacy = privacy
        self._opened: Vault | None = None
        self._unknown: dict[str, str] = {}

    async def reveal(self, server: str, name: str, arguments: JsonObject) -> "OutgoingArguments":
        """Return the arguments of a call as they are sent; `name` is what is called.

        What is built in receives placeholders.

        Raises:
            Denied: A placeholder is of a kind that this upstream may not receive.
            BadInput: They cannot be revealed.
            StoreError: The vault cannot be opened: nothing is sent that could not be concealed.
        """
        if not self._privacy.is_on or not self._privacy.is_upstream(server):
            return OutgoingArguments(arguments)
        vault = self._opened or await self._vault()
        if not may_hold_placeholders(arguments):
            return OutgoingArguments(arguments)
        allowed = self._privacy.receives(server)
        revealed = vault.reveal_known(arguments, allowed_kinds=allowed)
        if revealed is None:
            reveal = partial(vault.reveal, arguments, allowed_kinds=allowed)
            revealed = await anyio.to_thread.run_sync(reveal)
        if revealed.refused:
            raise _refused(name, server, revealed.refused)
        if revealed.unknown:
            self._unknown |= dict.fromkeys(revealed.unknown, name)
        assert isinstance(revealed.value, dict)  # noqa: S101
        return OutgoingArguments(revealed.value, revealed.revealed, revealed.unfindable)

    def covers(self, server: str, sent: "OutgoingArguments | None" = None) -> bool:
        """Whether a server's answer to what it was sent is concealed.

        One whose answers are not would say what it was just sent, if that was not.
        """
        return server in self._privacy.concealed or bool(sent and sent.kinds)

    async def conceal(
        self, server: str, value: Json, size: int, *, sent: "OutgoingArguments | None" = None
    ) -> Json:
        """Return what an upstream answered as guest code may have it; about `size` characters.

        `sent` is what it was sent for that.

        Raises:
            ToolFailed: It could not be concealed, so nobody gets it.
        """
        if not self.covers(server, sent):
            return value
        vault = self._opened or await self._vault()
        again = sent.unfindable if sent else ()
        try:
            if _is_soon_done(value, size, again):
                is_known, concealed = vault.conceal_known(
                    value, fields=self._privacy.rules, again=again
                )
                if is_known:
                    return _unwrapped(concealed)
            return await anyio.to_thread.run_sync(concealed_answer, self._concealer(sent), value)
        except ToolfoldError as error:
            raise ToolFailed(
                f"{server} was called, and its answer could not be concealed and was withheld: "
                f"{error}"
            ) from error

    def keep(
        self, server: str, keep: ArtifactSink, sent: "OutgoingArguments | None" = None
    ) -> ArtifactSink:
        """Return who takes what is no value, concealed where that can be."""
        return _RedactingSink(keep, self, server, sent) if self.covers(server, sent) else keep

    def cover(self, server: str, sent: "OutgoingArguments | None" = None) -> Redact | None:
        """Return what conceals a text that an upstream sent as a file; None if nothing does."""
        return partial(self.redact_stream, sent=sent) if self.covers(server, sent) else None

    @asynccontextmanager
    async def errors(
        self, server: str, sent: "OutgoingArguments | None" = None
    ) -> AsyncIterator[None]:
        """Conceal what errors say that leave this context: they are an upstream's words.

        `sent` is what it was sent for that.
        """
        try:
            yield
        except ToolfoldError as error:
            if not self.covers(server, sent):
                raise
            raise await self._concealed_error(server, error, sent) from None

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the reply says of placeholders that nobody knows."""
        if not self._unknown:
            return ()
        shown = ", ".join(f"{name} ({tool})" for name, tool in list(self._unknown.items())[:_SHOWN])
        more = f" and {len(self._unknown) - _SHOWN} more" if len(self._unknown) > _SHOWN else ""
        return (f"Unknown placeholders were sent unchanged: {shown}{more}.",)

    async def _vault(self) -> Vault:
        if self._opened is None:
            self._opened = await self._privacy.vault()
        return self._opened

    def redact_stream(
        self, chunks: Chunks, *, sent: "OutgoingArguments | None" = None
    ) -> Iterator[bytes]:
        """Yield a text concealed, piece by piece. To be used in a thread, once a call was made."""
        return redact_stream(chunks, self._concealer(sent))

    def conceal_mime_type(self, mime_type: str) -> str:
        """Return what a file is, once a call was made; nothing of it if it says of whom it is."""
        assert self._opened is not None  # noqa: S101
        is_known, concealed = self._opened.conceal_known(mime_type)
        return str(concealed) if is_known else _UNSAID

    def _concealer(self, sent: "OutgoingArguments | None" = None) -> "partial[Json]":
        assert self._opened is not None  # noqa: S101
        again = sent.unfindable if sent else ()
        return partial(self._opened.conceal, fields=self._privacy.rules, again=again)

    async def _concealed_error(
        self, server: str, error: ToolfoldError, sent: "OutgoingArguments | None"
    ) -> ToolfoldError:
        if self._opened is None:
            return error  # the vault's own: nothing was sent
        try:
            said = str(error)
            return type(error)(str(await self.conceal(server, said, len(said), sent=sent)))
        except ToolfoldError as trouble:
            return ToolFailed(
                f"A call of {server} failed, and what it said could not be concealed: {trouble}"
            )


@dataclass(frozen=True, slots=True)
class OutgoingArguments:
    """Arguments on their way to an upstream, and how many values of each kind are revealed."""

    arguments: JsonObject
    kinds: Mapping[str, int] = field(default_factory=dict)
    unfindable: tuple[HiddenValue, ...] = ()
    """Values to look for in the answer, because nothing finds them by themselves."""


class _RedactingSink:
    """Conceals what is kept of one call's answer. Images and other binaries stay as they are."""

    def __init__(
        self,
        keep: ArtifactSink,
        privacy_border: PrivacyBorder,
        server: str,
        sent: OutgoingArguments | None,
    ) -> None:
        self._covered = partial(privacy_border.redact_stream, sent=sent)
        self._sent = sent
        self._keep = keep
        self._privacy_border = privacy_border
        self._server = server

    def blob(self, blob: Blob, cover: Redact | None = None) -> Any:
        """Take an image or a binary; one that is text is concealed before anybody has it."""
        taken = replace(blob, mime_type=self._privacy_border.conceal_mime_type(blob.mime_type))
        return _Opaque(self._keep.blob(taken, cover or self._covered))

    async def large(self, tool: Tool, answer: LargeAnswer) -> Any:
        """Take what is too large, and conceal it as it is saved.

        Raises:
            ToolFailed: It is too large for that.
        """
        if answer.size > MAX_STREAM_BYTES:
            raise ToolFailed(
                f"{tool.path} was called, and its answer of {answer.size:,} bytes is not given to "
                f"code: at most {MAX_STREAM_BYTES:,} bytes can be concealed, and {self._server} "
                "has privacy on. Ask for less: a page, fewer fields."
            )
        others = await self._privacy_border.conceal(
            self._server, list(answer.others), answer.size, sent=self._sent
        )
        told = replace(
            answer,
            chunks=partial(self._covered, answer.chunks),
            others=tuple(others) if isinstance(others, list) else (),
        )
        return _Opaque(await self._keep.large(tool, told))


def _is_soon_done(value: Json, size: int, again: tuple[HiddenValue, ...]) -> bool:
    """Whether a value is short, and no text of lines that are JSON each."""
    sent_values = sum(len(str(each.value)) for each in again) if again else 0
    if size + sent_values > _SHORT_CHARS:
        return False
    return not (isinstance(value, str) and "\n" in value and ("{" in value or "[" in value))


def concealed_answer(conceal: Callable[[Json], Json], value: Json) -> Json:
    """Return what an upstream answered, concealed; every answer to a run goes this way."""
    if isinstance(value, str):
        return b"".join(redact_stream(lambda: [value.encode("utf-8", "replace")], conceal)).decode()
    return _unwrapped(conceal(value))


def _unwrapped(value: Any) -> Json:
    """Put back what stands for images and files."""
    if isinstance(value, _Opaque):
        return value.value
    if isinstance(value, list) and any(isinstance(each, _Opaque) for each in value):
        return [each.value if isinstance(each, _Opaque) else each for each in value]
    answer: Json = value
    return answer


def _refused(path: str, server: str, refused: tuple[str, ...]) -> Denied:
    kinds = sorted({name.strip("[]").rpartition("_")[0].upper() for name in refused})
    shown = ", ".join(refused[:_SHOWN])
    return Denied(
        f"{path} was not called: {shown} stands for personal data of the kind "
        f"{', '.join(kinds)}, which {server} may not receive. Leave it out, or ask the user to "
        f"add the kind to `receives` of [servers.{server}]."
    )
