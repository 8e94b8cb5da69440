"""Does one thing, and is killed between intent and send, or after that: `DIRECTORY HOW WHEN`."""

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import anyio
import anyio.to_thread
from entrypoints.rest_door import door
from execution.test_border import Doors
from execution.test_border_matrix import Accesses, scripts
from mcp import Client
from support import Running

from toolfold import api
from toolfold.app import running_app
from toolfold.catalog.sending import Sender
from toolfold.config.config import load_config
from toolfold.entrypoints.mcp.memory import make_memory_server
from toolfold.entrypoints.mcp.server import make_server


def killing(send: Callable[..., Any], when: str) -> Callable[..., Any]:
    async def sent(self: Sender, *args: Any, **kwargs: Any) -> None:
        if when == "after":
            await send(self, *args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)

    return sent


async def main(at: Path, how: str) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(at), "TOOLFOLD_HOME": str(at / "home")}
    config = load_config(cwd=at, environ=environ, config_file=at / "mcp.json")
    settings = replace(config.settings, tools="memory")
    if how == "own script":
        os.environ.update(environ, TOOLFOLD_NO_DAEMON="1")
        os.chdir(at)
        await anyio.to_thread.run_sync(api.store, "a note")
    async with running_app(config) as app, door(app) as http, Client(make_server(app)) as client:
        await app.catalog.learn()
        await app.catalog.offered.learn()
        surface = make_memory_server(app.shared.stores, replace(config, settings=settings))
        bank = Doors(Running(app), http, client, at / "home", at / "bank.jsonl")
        body = {"arguments": {"to": "QX"}}
        match how:
            case "code":
                await app.runtime.run("import bank\nbank.transfer(to='QX')")
            case "pinned":
                await client.call_tool("bank__transfer", {"to": "QX"})
            case "rest":
                await http.post("/tools/bank.transfer/execute", json=body)
            case "note":
                await http.post("/memory/notes", json={"content": "a note"})
            case _:
                async with Client(surface) as memory, scripts(app) as script:
                    where, kind = how.split()
                    do: Any = Accesses(bank, client, memory, script, "no rule")
                    await do((where, kind))


if __name__ == "__main__":
    for name in ("call", "forward", "verb", "read_outward", "prompt", "complete"):
        setattr(Sender, name, killing(getattr(Sender, name), sys.argv[3]))
    anyio.run(main, Path(sys.argv[1]), sys.argv[2])
