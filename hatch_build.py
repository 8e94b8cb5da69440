"""Stop a build whose package would lack a file, and make the README fit the package index."""

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ASSETS = Path("src/toolfold/assets")
PAGES = "https://github.com/toolfold/toolfold/blob/main"
RAW = "https://raw.githubusercontent.com/toolfold/toolfold/main"


class AssetsHook(BuildHookInterface[Any]):
    """Refuse to build a wheel or an sdist without vocabulary, model and tokenizer."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raise `RuntimeError` where an asset is missing; an editable install may come first."""
        if version == "editable":
            return
        missing = missing_assets(Path(self.root) / ASSETS, self.config["assets"])
        if missing:
            message = (
                f"Not built: {', '.join(missing)} missing in {ASSETS}. "
                "Run `make dist`, which makes these files first."
            )
            raise RuntimeError(message)


def missing_assets(folder: Path, names: list[str]) -> list[str]:
    """Return the `names` that are not non-empty files of `folder`."""
    return [name for name in names if not _is_filled(folder / name)]


def _is_filled(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


class ReadmeHook(MetadataHookInterface):
    """Give the package's page a README whose links lead somewhere."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put the README into `metadata`, with links to files of the repository made absolute."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute_links(text)}


def absolute_links(text: str) -> str:
    """Return Markdown in which links and images relative to the repository are absolute."""
    text = re.sub(r"(!\[[^]]*\]\()(?!https?:|#)", rf"\1{RAW}/", text)
    return re.sub(r"((?<!!)\[[^]]*\]\()(?!https?:|#)", rf"\1{PAGES}/", text)
