"""Options of the commands that edit the user's servers, and the secrets that these need."""

from typing import Any

from toolfold.entrypoints.parser import accept_yes

_EXAMPLES = (
    "toolfold add github -- npx -y @modelcontextprotocol/server-github",
    "toolfold add linear https://mcp.linear.app/mcp",
    "toolfold add openapi https://petstore3.swagger.io/api/v3/openapi.json --name pets",
    "toolfold add openapi ./spec.yaml --name shop --dry-run",
    "toolfold add ./server.json",
    "toolfold add graphql https://api.github.com/graphql --name gh --auth 'bearer=${GH_TOKEN}'",
)


def add_servers(commands: Any) -> None:
    """Add `toolfold add`, `toolfold remove` and `toolfold secrets`."""
    add = commands.add_parser(
        "add",
        help="add a server or an API, and try it",
        description="Add a server or an API to your own file, and try it.",
        examples=_EXAMPLES,
    )
    add.add_argument(
        "words",
        nargs="+",
        metavar="NAME URL | NAME -- COMMAND ARGS | openapi|graphql FILE-OR-URL | server.json",
        help="the server's name and where it is, an OpenAPI specification, a GraphQL server, or a "
        "server.json",
    )
    add.add_argument("--name", help="the name of an API; by default that of its title")
    add.add_argument(
        "--registry",
        metavar="FILE",
        help="where servers are described, by names such as io.github.x/y",
    )
    add.add_argument(
        "--url", help="the address of an API's server, if the specification has none or another"
    )
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
    add.add_argument("--json", action="store_true", help="print JSON")
    add.set_defaults(command="add", module="commands.servers")
    remove = commands.add_parser(
        "remove",
        help="remove a server from your own file",
        description="Remove a server from your own file.",
        examples=("toolfold remove linear",),
    )
    remove.add_argument("name")
    remove.add_argument("--json", action="store_true", help="print JSON")
    accept_yes(remove)
    remove.set_defaults(command="remove", module="commands.servers")
    _add_secrets(commands)


def _add_secrets(commands: Any) -> None:
    """Add `toolfold secrets`."""
    secrets = commands.add_parser(
        "secrets",
        help="keep tokens of servers out of files",
        description="Tokens and passwords that your servers need, kept out of files. Write "
        "${keyring:NAME} where one belongs.",
        examples=(
            "toolfold secrets set GITHUB_TOKEN",
            "gh auth token | toolfold secrets set GITHUB_TOKEN",
            "toolfold secrets",
            "toolfold secrets remove GITHUB_TOKEN",
        ),
    )
    verbs = secrets.add_subparsers(metavar="VERB", prog="toolfold secrets")

    def add(name: str, about: str, *examples: str) -> Any:
        parser = verbs.add_parser(
            name, help=about, description=f"{about[:1].upper()}{about[1:]}.", examples=examples
        )
        parser.set_defaults(command=f"secrets_{name}", module="commands.secrets")
        parser.add_argument("--json", action="store_true", help="print JSON")
        return parser

    giving = add(
        "set",
        "keep a secret, typed without echo or piped in",
        "toolfold secrets set GITHUB_TOKEN",
        "toolfold secrets set GITHUB_TOKEN < token.txt",
    )
    giving.add_argument(
        "name", nargs="?", metavar="NAME", help="default: each one that a server lacks"
    )
    add(
        "list", "list secrets and who uses them, never their values", "toolfold secrets list --json"
    )
    removing = add("remove", "forget a secret", "toolfold secrets remove GITHUB_TOKEN --yes")
    removing.add_argument("name", metavar="NAME")
    removing.add_argument("--yes", "-y", action="store_true", help="do not ask")
