"""One callable of an upstream, as the catalog knows it."""

from dataclasses import dataclass

from toolfold.jsontypes import JsonObject


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A listed tool under the names that guest code uses."""

    server: str
    module: str
    function: str
    listed: ListedTool

    @property
    def path(self) -> str:
        """How guest code and people write it: `github.create_issue`."""
        return f"{self.module}.{self.function}"
