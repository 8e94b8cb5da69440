"""One callable of an upstream, as the catalog knows it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from toolfold.jsontypes import JsonObject


class Returned(NamedTuple):
    """What a tool returns, as Python has it."""

    type: str
    classes: tuple[str, ...]
    """The named tuples that the type is made of, as source, each after those that it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTool:
    """A tool as its server listed it. The MCP defaults hold where the server said nothing."""

    name: str
    description: str = ""
    input_schema: JsonObject
    output_schema: JsonObject | None = None
    read_only: bool = False
    destructive: bool | None = None
    idempotent: bool = False
    positional: tuple[str, ...] | None = None
    """The parameters that may be given by position; None for those that are required."""

    returned: Returned | None = None
    """Known of our own tools, in place of an output schema."""


def built_in_server(module: str) -> str:
    """Return what stands for the server of a module that is built in."""
    return f"toolfold:{module.removeprefix('toolfold.')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A listed tool under the names that guest code uses."""

    server: str
    module: str
    function: str
    listed: ListedTool
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Of required parameters, those that are known from how the server was started."""

    @property
    def is_built_in(self) -> bool:
        """Whether no server is behind it."""
        return self.server == built_in_server(self.module)

    @property
    def own_path(self) -> str:
        """How a built-in tool is called where no server has the name of its module."""
        return self.path.removeprefix("toolfold.")

    @property
    def path(self) -> str:
        """How guest code and people write it: `github.create_issue`."""
        return f"{self.module}.{self.function}"
