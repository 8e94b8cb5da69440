"""Why a connection to a server did not come about, in words that a person can act on."""

from dataclasses import dataclass
from pathlib import Path

import httpx2
import mcp_types as types
from mcp import MCPError
from pydantic import ValidationError

from toolfold.catalog.transport import Transport
from toolfold.config.harmless import address, program_path
from toolfold.config.servers import ServerConfig


@dataclass(frozen=True, slots=True)
class ConnectFailure:
    """What is known of one attempt to connect. Sentences leave out the server's name."""

    config: ServerConfig
    line: Transport
    directory: Path
    connect_timeout_s: float

    def of(self, error: BaseException) -> str | None:
        """Say what an error means; None for one that speaks for itself."""
        match leaf := _leaf(error):
            case TimeoutError():
                return self.of_silence()
            case FileNotFoundError() if not self.directory.is_dir():
                return f"its working directory {self.directory} does not exist."
            case FileNotFoundError() | PermissionError():
                command = program_path(self.config.command)
                return (
                    f"the command {command!r} was not found or may not be run. "
                    "Is it installed and on the PATH?"
                )
            case MCPError() if self._is_stdio and leaf.code == types.CONNECTION_CLOSED:
                words = self.line.last_words()
                return "it ended during the handshake" + (f", saying: {words}" if words else ".")
            case httpx2.TransportError():
                return f"{address(self.config.url)} cannot be reached: {leaf}"
        return None

    def of_silence(self) -> str:
        """Say what is known of a server that did not answer."""
        silence = f"it did not answer the handshake within {self.connect_timeout_s:g} s"
        if self.line.noise:
            return f"{silence}, and printed what is not MCP: {self.line.noise}"
        words = self.line.last_words() if self._is_stdio else ""
        return silence + (f". It said: {words}" if words else ".")

    @property
    def _is_stdio(self) -> bool:
        return self.config.transport == "stdio"


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says."""
    error = _leaf(error)
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:300]


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
