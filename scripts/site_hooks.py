"""What mkdocs runs while it builds the site: links that leave docs/ lead to the repository."""

import re
from pathlib import Path
from posixpath import normpath
from typing import Any

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"(\]\()((?:\.\./|decisions/)[^)\s]*)\)")


def on_config(config: Any, **_: Any) -> Any:
    """Say at the foot of each page which version it describes."""
    source = (ROOT / "src" / "toolfold" / "__init__.py").read_text(encoding="utf-8")
    version = re.search(r'__version__ = "([^"]+)"', source)
    assert version
    config.copyright = f"toolfold {version[1]} · Apache-2.0"
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Return a page in which links to files beside docs/ are links to the repository."""
    folder = f"docs/{Path(page.file.src_uri).parent}"

    def absolute(link: re.Match[str]) -> str:
        path = normpath(f"{folder}/{link[2]}")
        return f"{link[1]}{config.repo_url}/blob/main/{path})"

    return _LINK.sub(absolute, markdown)
