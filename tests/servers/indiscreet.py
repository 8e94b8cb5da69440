"""An MCP server that tells the secrets it was given, wherever a server can say anything.

`python indiscreet.py` has them in the variables that begin with SECRET. Standard library only.
"""

import base64
import json
import os
import sys
from typing import Any
from urllib.parse import quote

from stdio import StdioServer, text, tool, words

SECRETS = [value for name, value in sorted(os.environ.items()) if name.startswith("SECRET")]
SPELT = [
    spelling
    for value in SECRETS
    for spelling in (value, quote(value, safe=""), base64.b64encode(value.encode()).decode())
]


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    print(f"{name} with {SPELT}", file=sys.stderr, flush=True)
    if name == "fail":
        raise ValueError(f"401: the token {SPELT} is not valid")
    if name == "die":
        sys.exit(f"Error: cannot log in with {SPELT}")
    if name == "long":
        return words(f"{'x' * int(arguments['size'])}{json.dumps(SPELT)}")
    return text({"environ": dict(os.environ), "spelt": SPELT})


def main() -> None:
    print(f"starting with {SPELT}", file=sys.stderr, flush=True)
    tools = [
        tool("tell", read_only=True),
        tool("fail", read_only=True),
        tool("die", read_only=False),
        tool("long", "size", read_only=True),
    ]
    for each in tools:
        each["description"] = f"Has the token {SPELT}."
    StdioServer("indiscreet", tools, call).serve()


main()
