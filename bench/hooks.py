"""Measure session hooks: how long a client waits for one, and how many tokens it takes.

Times: the start of a session with the daemon warm, without a daemon, and by the child, beside
`python -c pass` and beside the path of mcp-memory-service's own hooks, which start a Python and
search. All take turns, and each time is compared with that of `python -c pass` in the same round.

Tokens: what a hook shows, and what an agent would read and write to have the same notes by calls of
tools: the definitions, the calls, the answers. All are counted from the texts themselves.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from memory_sides import Side, filled, memory_service
from notes import notes
from stage import ROOT, Unavailable
from targets import limit

from toolfold.entrypoints.hooks.cost import AvoidedCall, definitions, tokens_as_tool_calls
from toolfold.entrypoints.hooks.notes import line
from toolfold.memory.models import CompactMemory, CompactSearchResult
from toolfold.relay.hooks.text import fenced
from toolfold.tokens import count_tokens

MAX_BARE = limit("hook-bare")
LEAST_PEER = limit("hook-peer")
LEAST_SAVED = limit("hook-saved")
NOTES = 1_000
SLOW_ROUNDS = 5
BARE = "python -c pass"
WARM = "toolfold hook session-start, daemon warm"
COLD = "the same, no daemon: it is started"
CHILD = "the same, by the child"
PEER = "mcp-memory-service: import api, search"
QUERY = "feature login redirect Fix the login redirect loop of the session"
HOW = 'In execute_code, memory.get("HASH") returns the whole of a note.'
PEER_SEARCH = f"from mcp_memory_service.api import search; search({QUERY!r}, limit=8)"


def main() -> int:
    """Print both tables; fail where a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--tools", type=Path, default=ROOT / ".tools", metavar="DIR")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        world = World(Path(directory))
        world.fill()
        try:
            peer = _peer(arguments.tools / "memory-service", Path(directory) / "peer")
            status = _print_times(world, peer, arguments.rounds)
            world.warm()
            status |= _print_tokens(world)
            if peer is not None:
                anyio.run(_print_peer_tokens, *peer)
        finally:
            world.stop()
    return status


class World:
    """A user with a repository, and a thousand notes about it."""

    def __init__(self, root: Path) -> None:
        self.project = root / "shop"
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "TOOLFOLD_HOME": str(root / "home"),
        }
        script = Path(sys.executable).with_name("toolfold")
        self.command = [str(script)] if script.exists() else [sys.executable, "-m", "toolfold"]
        self._sessions = 0

    def fill(self) -> None:
        """Make the repository and store the notes."""
        self.project.mkdir()
        self._git("init", "-q", "-b", "feature/login-redirect")
        for subject in ("Add the session store", "Fix the login redirect loop of the session"):
            self._git("commit", "-q", "--allow-empty", "-m", subject)
        about = [
            "The login redirect loop comes from the SameSite attribute of the session cookie; set"
            " it to Lax, or the browser drops the cookie on the way back from the provider.",
            "Sessions are kept in Redis under sess:<id> for 14 days; logging in renews them, and"
            " the redirect after login goes to the page that was asked for, never to another host.",
            "Tests of login run against a stand-in of the identity provider on port 9091.",
        ]
        code = """
import json, sys
from toolfold import api
told = json.load(sys.stdin)
api.store_batch(told["notes"])
for note in told["about"]: api.store(note, tags="auth")
for note in told["important"]: api.store(note, tags="important")
"""
        texts = list(notes(NOTES + 5, seed="hooks"))
        told = {"notes": texts[5:], "about": about, "important": texts[:5]}
        self.run([sys.executable, "-c", code], json.dumps(told))
        self.be_ready()

    def hook(self, **environ: str) -> str:
        """Run the hook as a client does; return what it prints."""
        self._sessions += 1
        payload = {"session_id": f"s{self._sessions}", "cwd": str(self.project)}
        payload |= {"source": "startup", "transcript_path": "/none", "hook_event_name": "S"}
        return self.run([*self.command, "hook", "session-start"], json.dumps(payload), **environ)

    def ask(self, verb: str, **arguments: Any) -> Any:
        """Ask memory itself."""
        code = "import json, sys; from toolfold.api.door import ask\n"
        code += "print(json.dumps(ask(sys.argv[1], json.loads(sys.argv[2]))))"
        command = [sys.executable, "-c", code, f"memory.{verb}", json.dumps(arguments)]
        return json.loads(self.run(command))

    def be_ready(self) -> None:
        """Wait until every note is found by its meaning too."""
        while not self.ask("health")["ready"]:
            self.ask("search", query=QUERY)
            time.sleep(0.2)

    def warm(self) -> None:
        """Have a daemon that has answered before."""
        self.hook()

    def stop(self) -> None:
        """Have no daemon."""
        self.run([*self.command, "stop", "--now"])

    def run(self, command: list[str], told: str = "", **environ: str) -> str:
        """Run a command in the project; return what it prints."""
        done = subprocess.run(
            command,
            input=told,
            env={**self.environ, **environ},
            cwd=self.project,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _git(self, *arguments: str) -> None:
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        self.run(["git", *identity, *arguments])


@dataclass(frozen=True)
class Candidate:
    """Something to time, and what has to be so before."""

    title: str
    act: Callable[[], object]
    prepare: Callable[[], object] = lambda: None
    is_slow: bool = False
    times: list[float] = field(default_factory=list)


def _peer(place: Path, directory: Path) -> tuple[Side, Path] | None:
    try:
        side = memory_service(place)[-1]  # the quicker of the two
    except Unavailable as reason:
        print(f"{PEER}: skipped, {reason}")
        return None
    directory.mkdir()
    return side, filled(side, place / "filled", NOTES, directory)


def _print_times(world: World, peer: tuple[Side, Path] | None, rounds: int) -> int:
    ratios = _take_turns(_candidates(world, peer), rounds)
    status = 0
    if ratios[WARM] > MAX_BARE:
        print(f"{WARM}: {ratios[WARM]:.2f} x bare python, more than {MAX_BARE}")
        status = 1
    if PEER in ratios:
        faster = ratios[PEER] / ratios[WARM]
        print(f"{WARM}: {faster:.0f} x faster than {PEER} (at least {LEAST_PEER:.0f})")
        status |= faster < LEAST_PEER
    return status


def _candidates(world: World, peer: tuple[Side, Path] | None) -> list[Candidate]:
    patient = {"TOOLFOLD_HOOKS_TIMEOUT_S": "60"}
    found = [
        Candidate(BARE, lambda: world.run([sys.executable, "-c", "pass"])),
        Candidate(WARM, lambda: _answered(world.hook()), world.warm),
        Candidate(COLD, lambda: _answered(world.hook(**patient)), world.stop, is_slow=True),
        Candidate(
            CHILD,
            lambda: _answered(world.hook(TOOLFOLD_NO_DAEMON="1", **patient)),
            is_slow=True,
        ),
    ]
    if peer is not None:
        side, home = peer
        command, environ = [str(side.python), "-c", PEER_SEARCH], side.env_at(home)
        found.append(Candidate(PEER, lambda: world.run(command, **environ), is_slow=True))
    return found


def _answered(printed: str) -> None:
    assert "toolfold-memory" in printed, printed


def _take_turns(candidates: list[Candidate], rounds: int) -> dict[str, float]:
    pairs: dict[str, list[float]] = {candidate.title: [] for candidate in candidates}
    for turn in range(rounds + 1):
        bare_s = 0.0
        for candidate in candidates:
            if candidate.is_slow and turn > SLOW_ROUNDS:
                continue
            candidate.prepare()
            started = time.perf_counter()
            candidate.act()
            taken_s = time.perf_counter() - started
            bare_s = bare_s or taken_s
            if turn:  # the first round warms the caches of the file system
                candidate.times.append(taken_s)
                pairs[candidate.title].append(taken_s / bare_s)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print(f"{'start of a session, ' + format(NOTES, ',') + ' notes':<48}{'ms':>9}{'x bare':>9}")
    ratios = {title: statistics.median(taken) for title, taken in pairs.items()}
    for each in candidates:
        ms = statistics.median(each.times) * 1000
        print(f"{each.title:<48}{ms:>9.1f}{ratios[each.title]:>9.2f}")
    return ratios


def _print_tokens(world: World) -> int:
    """Compare what hooks show with calls of our own tools of memory."""
    every = sum(map(count_tokens, definitions().values()))
    print(f"\nall {len(definitions())} tools of memory are defined in {every:,} tokens\n")
    columns = f"{'all defined':>12}{'on demand':>11}{'hook':>7}{'fewer':>8}{'fewer':>8}"
    print(f"{'tokens, by calls of our tools and by the hook':<48}{columns}")
    git = {"query": QUERY, "limit": 3}
    important = {"tags": "important", "limit": 5}
    cases: Mapping[str, list[tuple[str, dict[str, Any]]]] = {
        "git context, 3 notes": [("search", git)],
        "recent, 5 notes": [("list", {"limit": 5})],
        "important, 5 notes": [("search_by_tag", important)],
    }
    calls = [call for case in cases.values() for call in case]
    status = 0
    for title, case in {"start of a session, 8 notes": calls, **cases}.items():
        asked, found = _asked(world, case)
        if len(case) > 1:
            shown = json.loads(world.hook())["hookSpecificOutput"]["additionalContext"]
        else:
            shown = fenced([line(note) for note in found], project="shop", about="", how=HOW)
        hook = count_tokens(shown)
        on_demand = tokens_as_tool_calls(asked)
        used = sum(count_tokens(definitions()[tool]) for tool in {each.tool for each in asked})
        all_defined = on_demand - used + every
        fewer = 1 - hook / all_defined
        print(
            f"{title:<48}{all_defined:>12,}{on_demand:>11,}{hook:>7,}"
            f"{fewer:>8.0%}{1 - hook / on_demand:>8.0%}"
        )
        status |= fewer < LEAST_SAVED
    return status


def _asked(
    world: World, calls: list[tuple[str, dict[str, Any]]]
) -> tuple[list[AvoidedCall], list[CompactMemory]]:
    asked: list[AvoidedCall] = []
    found: list[CompactMemory] = []
    for verb, arguments in calls:
        answer = world.ask(verb, **arguments)
        memories = tuple(
            CompactMemory(**{**note, "tags": tuple(note["tags"])}) for note in answer["memories"]
        )
        result = CompactSearchResult(memories, answer["total"], answer["query"])
        asked.append(AvoidedCall(f"memory_{verb}", arguments, repr(result)))
        found += memories
    return asked, found


async def _print_peer_tokens(side: Side, home: Path) -> None:
    """Print what the service's own tools take for the same number of notes."""
    command, *arguments = side.server
    target = StdioServerParameters(command=command, args=arguments, env=side.env_at(home))
    with Path(os.devnull).open("w") as nowhere:
        transport = stdio_client(target, errlog=nowhere)
        async with Client(transport, mode="legacy", read_timeout_seconds=120) as client:
            tools = (await client.list_tools()).tools
            defined = {
                tool.name: count_tokens(
                    json.dumps(
                        {
                            "name": tool.name,
                            "description": tool.description,
                            "inputSchema": tool.input_schema,
                        },
                        ensure_ascii=False,
                    )
                )
                for tool in tools
            }
            arguments_of = {"query": QUERY, "limit": 8}
            answer = await client.call_tool("memory_search", arguments_of)
    text = "\n".join(getattr(block, "text", "") for block in answer.content)
    call = json.dumps({"name": "memory_search", "arguments": arguments_of})
    passed = count_tokens(call) + count_tokens(text)
    print(
        f"\n{side.title}: one search for 8 notes takes {passed:,} tokens, its definition "
        f"{defined['memory_search']:,}, those of all {len(defined)} tools {sum(defined.values()):,}"
    )


if __name__ == "__main__":
    sys.exit(main())
