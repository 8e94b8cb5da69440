"""The line protocol of the workers: each `go` is answered with the seconds that the work took."""

import itertools
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client


def spec() -> dict[str, Any]:
    """Return what this worker shall do: one JSON object, its only argument."""
    told: dict[str, Any] = json.loads(sys.argv[1])
    return told


@asynccontextmanager
async def connected(told: dict[str, Any]) -> AsyncIterator[Client]:
    """Start the server that the spec names and connect the official SDK's client to it."""
    command, *arguments = told["command"]
    parameters = StdioServerParameters(command=command, args=arguments, env=told["env"])
    async with Client(stdio_client(parameters), mode=told.get("mode", "auto")) as client:
        await client.list_tools()
        yield client


async def answer(work: Callable[[int], Awaitable[None]], *, repeats: int = 1) -> None:
    """Do `work` `repeats` times for each `go`, and answer with the mean of its seconds."""
    print("ready", flush=True)
    numbers = itertools.count(1)
    while (await anyio.to_thread.run_sync(sys.stdin.readline)).strip() == "go":
        begun = time.perf_counter()
        for _ in range(repeats):
            await work(next(numbers))
        print(f"{(time.perf_counter() - begun) / repeats:.9f}", flush=True)
