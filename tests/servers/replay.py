"""Serve the tools of a recorded catalogue: `python replay.py FILE [--page-size N] [--answer FILE]`.

A call answers with its own name and arguments as JSON text, or with the text of a file.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from stdio import StdioServer, text, words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--page-size", type=int, default=50)
    parser.add_argument("--answer", type=Path)
    options = parser.parse_args()
    recorded = json.loads(options.file.read_text(encoding="utf-8"))
    answer = options.answer.read_text(encoding="utf-8") if options.answer else ""

    def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return words(answer) if answer else text({"tool": name, "arguments": arguments})

    name = recorded.get("server", "replay")
    StdioServer(name, recorded["tools"], call, page_size=options.page_size).serve()


if __name__ == "__main__":
    main()
