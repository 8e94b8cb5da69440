"""Options of the commands that edit the user's servers."""

from typing import Any

_EXAMPLES = (
    "toolfold add github -- npx -y @modelcontextprotocol/server-github",
    "toolfold add linear https://mcp.linear.app/mcp",
    "toolfold add openapi https://petstore3.swagger.io/api/v3/openapi.json --name pets",
    "toolfold add openapi ./spec.yaml --name shop --dry-run",
)


def add_servers(commands: Any) -> None:
    """Add `toolfold add` and `toolfold remove`."""
    add = commands.add_parser(
        "add",
        help="add a server or an API, and try it",
        description="Add a server or an API to your own file, and try it.",
        examples=_EXAMPLES,
    )
    add.add_argument(
        "words",
        nargs="+",
        metavar="NAME URL | NAME -- COMMAND ARGS | openapi FILE-OR-URL",
        help="the server's name and where it is, or an OpenAPI specification",
    )
    add.add_argument("--name", help="the name of an API; by default that of its title")
    add.add_argument("--url", help="where the server of an API is, if not where it says")
    add.add_argument(
        "--env", action="append", default=[], metavar="KEY=VALUE", help="a variable of a command"
    )
    add.add_argument(
        "--header", action="append", default=[], metavar="KEY=VALUE", help="a header of a URL"
    )
    add.add_argument(
        "--auth",
        action="append",
        default=[],
        metavar="SCHEME=VALUE",
        help="a credential of an API: bearer=${TOKEN}",
    )
    add.add_argument("--dry-run", action="store_true", help="say what it offers, and add nothing")
    add.set_defaults(command="add", module="commands.servers")
    remove = commands.add_parser(
        "remove",
        help="remove a server from your own file",
        description="Remove a server from your own file.",
        examples=("toolfold remove linear",),
    )
    remove.add_argument("name")
    remove.set_defaults(command="remove", module="commands.servers")
