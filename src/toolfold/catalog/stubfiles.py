"""The catalog as files, for agents that like to browse.

```text
/servers/index.txt                    every tool, a line each
/servers/github/index.txt             every tool of one server, a line each
/servers/github/create_issue.pyi      how to call it
```
"""

from collections.abc import Iterable, Sequence

from toolfold.catalog.catalog import Catalog

_INDEX = "index.txt"


class StubFiles:
    """Reads the catalog as it is at the moment."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def entries(self, path: str) -> Sequence[str] | None:
        """Return the names in a directory, in order; None if there is no such directory."""
        match _parts(path):
            case []:
                return ["servers"]
            case ["servers"]:
                return [_INDEX, *sorted(self._catalog.modules)]
            case ["servers", module] if module in self._catalog.modules:
                functions = sorted(self._catalog.functions(module))
                return [_INDEX, *(f"{function}.pyi" for function in functions)]
        return None

    def read(self, path: str) -> str | None:
        """Return the text of a file; None if there is no such file."""
        match _parts(path):
            case ["servers", name] if name == _INDEX:
                return _lines(self._catalog.brief(tool) for tool in self._catalog.tools)
            case ["servers", module, name] if name == _INDEX and module in self._catalog.modules:
                return _lines(map(self._catalog.brief, self._catalog.functions(module).values()))
            case ["servers", module, name] if name.endswith(".pyi"):
                tool = self._catalog.functions(module).get(name.removesuffix(".pyi"))
                return None if tool is None else self._catalog.describe(tool)
        return None


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
