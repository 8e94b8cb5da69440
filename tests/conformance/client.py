"""The client that the conformance suite examines: toolfold's own way to a server.

The suite runs `python client.py URL` with the name of a scenario in the environment. Whatever the
scenario, this does what a user of toolfold does: connect, log in when told to, call tools.
"""

import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2

from toolfold.catalog.catalog import Catalog
from toolfold.catalog.large import MessageSizes
from toolfold.catalog.listing import ListingCache
from toolfold.catalog.login.flow import log_in
from toolfold.catalog.login.logins import Logins
from toolfold.catalog.questions import Elicitor, Question, Reply
from toolfold.catalog.secrets import Secrets, ServerSecrets
from toolfold.catalog.sending import Sender
from toolfold.catalog.tool import Tool
from toolfold.catalog.transport import ServerStart
from toolfold.catalog.upstream import McpUpstream
from toolfold.config.config import Config, load_config
from toolfold.errors import UpstreamError, UpstreamUnavailable
from toolfold.storage.secrets import SecretStore

LOGINS = 3
DOCUMENT = "https://conformance-test.local/client-metadata.json"
SAMPLES: dict[str, Any] = {"string": "text", "integer": 1, "number": 1.5, "boolean": True}


class NeedsLogin(Exception):
    """The server cannot be used before `toolfold login`."""


async def main(url: str) -> None:
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    with tempfile.TemporaryDirectory() as home:
        config = make_config(Path(home), url, context)
        for _ in range(LOGINS):
            try:
                async with connected(config) as (catalog, sender):
                    await use(catalog, sender, scenario, context)
                return
            except BaseExceptionGroup as group:
                if group.subgroup(NeedsLogin) is None:
                    raise
                await log_in_without_a_person(config)
    raise SystemExit(f"It wanted more than {LOGINS} logins.")


def make_config(home: Path, url: str, context: dict[str, Any]) -> Config:
    oauth = {"clientId": context.get("client_id", DOCUMENT)}
    if secret := context.get("client_secret"):
        oauth["clientSecret"] = secret
    entry = {"type": "http", "url": url, "oauth": oauth}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"examiner": entry}}))
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "TOOLFOLD_HOME": str(home / "own")}
    return load_config(config_file=home / "mcp.json", cwd=home, environ=environ)


@asynccontextmanager
async def connected(config: Config) -> AsyncIterator[tuple[Catalog, Sender]]:
    [server] = config.servers
    upstream = McpUpstream(
        server,
        start=ServerStart(directory=Path.cwd(), path=os.environ["PATH"]),
        cache=ListingCache(config.directories.cache),
        logins=Logins(config.directories),
        log_file=Path(os.devnull),
        connect_timeout_s=60,
        sizes=MessageSizes(result_bytes=1_000_000, large_result_bytes=1_000_000),
        task_s=600,
        secrets=ServerSecrets(
            Secrets(SecretStore(config.directories.data), {}), server, os.environ["PATH"], ""
        ),
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(upstream.serve)
        catalog = Catalog([upstream], max_result_bytes=1_000_000)
        yield catalog, Sender([upstream], (), catalog.offered, max_result_bytes=1_000_000)
        tasks.cancel_scope.cancel()


async def use(catalog: Catalog, sender: Sender, scenario: str, context: dict[str, Any]) -> None:
    await catalog.learn(fresh=True)
    [status] = catalog.statuses()
    if status.fault:
        return judge(UpstreamUnavailable(status.fault))
    catalog.refresh()
    by_name = {tool.listed.name: tool for tool in catalog.tools}
    if scenario == "json-schema-2020-12-preservation":
        # The schema goes back as it was received.
        schema = by_name["json_schema_2020_12_tool"].listed.input_schema
        return await call(sender, by_name["json_schema_echo"], {"schema": schema})
    for each in context.get("toolCalls", []):
        await call(sender, by_name.pop(each["name"]), each["arguments"])
    for tool in by_name.values():
        await call(sender, tool, sample(tool))
    return None


async def call(sender: Sender, tool: Tool, arguments: dict[str, Any]) -> None:
    try:
        await sender.forward(tool, arguments, ask=Elicitor(user="examiner", put=accept_defaults))
    except UpstreamError as error:
        judge(error)


def judge(error: UpstreamError) -> None:
    """Tell what a login would cure from what it would not; that a tool failed is no failure."""
    print(error, file=sys.stderr)
    if "toolfold login" in str(error):
        raise NeedsLogin
    if isinstance(error, UpstreamUnavailable):
        raise SystemExit(1)


def sample(tool: Tool) -> dict[str, Any]:
    """Make arguments that fit the tool."""
    schema = tool.listed.input_schema
    properties: dict[str, Any] = schema.get("properties", {})
    return {
        name: SAMPLES.get(properties.get(name, {}).get("type"), {})
        for name in schema.get("required", [])
    }


async def accept_defaults(question: Question) -> Reply:
    """Be a user who changes nothing in a form, and fills in what has no default."""
    properties: dict[str, Any] = (question.schema or {}).get("properties", {})  # type: ignore[assignment]
    content = {
        name: field.get("default", SAMPLES.get(field.get("type")))
        for name, field in properties.items()
    }
    return Reply(action="accept", content=content)


async def log_in_without_a_person(config: Config) -> None:
    """Do what `toolfold login` does, with a browser that agrees to everything."""
    [server] = config.servers
    logins = Logins(config.directories)
    async with browsing() as browser:

        async def visit(url: str) -> None:
            browser.start_soon(follow, url)

        granted = await log_in(server, visit=visit, timeout_s=100, earlier=logins.load(server))
    if granted is None:
        raise SystemExit("The server asks for a login and offers none.")
    async with logins.locked(server):
        logins.save(server, granted)


@asynccontextmanager
async def browsing() -> AsyncIterator[anyio.abc.TaskGroup]:
    async with anyio.create_task_group() as tasks:
        yield tasks
        tasks.cancel_scope.cancel()


async def follow(url: str) -> None:
    """Visit a page and go where it leads."""
    async with httpx2.AsyncClient(follow_redirects=True) as http:
        await http.get(url)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
