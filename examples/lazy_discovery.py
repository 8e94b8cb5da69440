"""Find a tool when it is needed, and read about that one alone.

    toolfold serve --config examples/mcp.json
    python examples/lazy_discovery.py [URL]

An agent that does this reads three short answers in place of every definition.
"""

import sys

from toolfold import Client


def main(url: str) -> None:
    """Go from what there is to one call."""
    with Client(url) as client:
        for name, category in client.discover_tools().categories.items():
            print(f"{name}: {category.count} tools, {category.description}")

        [best, *_] = client.list_tools("records", query="create entities").tools
        print(f"\nbest fit: {best.name}: {best.description}")

        tool = client.get_tool(best.name)
        print(f"call: {tool.call}")
        for parameter in tool.parameters:
            needed = "required" if parameter.required else "optional"
            print(f"  {parameter.name}: {parameter.type}, {needed}")

        ada = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
        print(f"\nresult: {client.call_tool(tool.name, {'entities': [ada]})}")


if __name__ == "__main__":
    main(*sys.argv[1:2] or ["http://127.0.0.1:8765"])
