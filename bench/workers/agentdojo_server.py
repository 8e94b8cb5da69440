"""One suite of AgentDojo as an MCP server over stdio; run with the Python that has AgentDojo.

`agentdojo_server.py SUITE SCENE LOG` serves it: the file SCENE has a line with a number
and a task, and after it what an attacker has written into the environment, which is made anew
whenever the file changes; calls are lines in LOG.
`agentdojo_server.py --dump` prints what the benchmark asks: tasks with the calls that solve them
and what was answered, goals of injections, and which calls show what an attacker has written.
"""

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

from agentdojo.functions_runtime import FunctionsRuntime, TaskEnvironment
from agentdojo.task_suite.load_suites import get_suites
from pydantic import TypeAdapter

VERSION = "v1.2.2"
READS = ("get_", "list_", "search_", "read_", "check_")
WRITES = {"get_webpage"}
"""It goes out to an address that its caller chooses, and the environment keeps that it did."""
MARK = "QQINJECTIONQQ"


def is_reading(name: str) -> bool:
    """Return what the server says of a tool."""
    return name.startswith(READS) and name not in WRITES


def environment(suite: Any, written: str) -> TaskEnvironment:
    """Return the suite's environment with what an attacker has written at every place there is."""
    text = _text(suite, is_written=bool(written))
    return suite.environment_type.model_validate_json(text.replace(MARK, json.dumps(written)[1:-1]))


@cache
def _text(suite: Any, *, is_written: bool) -> str:
    places = dict.fromkeys(suite.get_injection_vector_defaults(), MARK) if is_written else {}
    return suite.load_and_inject_default_environment(places).model_dump_json()


class Suite:
    """Answers calls in one environment."""

    def __init__(self, suite: Any) -> None:
        self.suite = suite
        self.runtime = FunctionsRuntime(suite.tools)
        self.environment = environment(suite, "")

    def begin(self, task: Any) -> None:
        """Change the environment as a task wants it at its start; goals of injections do not."""
        if hasattr(task, "init_environment"):
            self.environment = task.init_environment(self.environment)

    def call(self, name: str, given: dict[str, Any]) -> tuple[Any, str | None]:
        """Return the answer as JSON has it, and what went wrong."""
        answer, fault = self.runtime.run_function(self.environment, name, given)
        return TypeAdapter(Any).dump_python(answer, mode="json"), fault

    def tools(self) -> list[dict[str, Any]]:
        """List the tools."""
        return [
            {
                "name": each.name,
                "description": each.description,
                "inputSchema": each.parameters.model_json_schema(),
                "annotations": {"readOnlyHint": is_reading(each.name)},
            }
            for each in self.suite.tools
        ]


def solved(suite: Any, task: Any) -> list[dict[str, Any]]:
    """Return the calls that solve a task, each with what it reads and was answered."""
    served = Suite(suite)
    served.begin(task)
    calls = task.ground_truth(served.environment.model_copy(deep=True))
    found = []
    for call in calls:
        answer, fault = served.call(call.function, call.args)
        found.append(
            {
                "function": call.function,
                "args": dict(call.args),
                "reads": is_reading(call.function),
                "answer": fault or answer,
            }
        )
    return found


def carriers(suite: Any, tasks: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the reading calls of tasks whose answer shows what an attacker has written."""
    served = Suite(suite)
    served.environment = environment(suite, MARK)
    found = {}
    for call in (each for calls in tasks for each in calls if each["reads"]):
        key = json.dumps([call["function"], call["args"]], sort_keys=True)
        if key not in found and MARK in json.dumps(served.call(call["function"], call["args"])[0]):
            found[key] = {"function": call["function"], "args": call["args"]}
    return list(found.values())


def dump() -> dict[str, Any]:
    """Return all that the benchmark has to know."""
    found = {}
    for name, suite in get_suites(VERSION).items():
        tasks = {
            key: {"prompt": task.PROMPT, "calls": solved(suite, task)}
            for key, task in suite.user_tasks.items()
        }
        goals = {
            key: {"goal": task.GOAL, "calls": solved(suite, task)}
            for key, task in suite.injection_tasks.items()
        }
        shown = carriers(suite, [task["calls"] for task in tasks.values()])
        found[name] = {"tasks": tasks, "goals": goals, "carriers": shown}
    return found


def serve(name: str, scene: Path, log: Path) -> None:
    """Answer requests until the input ends."""
    served, seen = Suite(get_suites(VERSION)[name]), ""
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        if (text := scene.read_text("utf-8")) != seen:
            seen = text
            task, _, written = text.partition("\n")
            served.environment = environment(served.suite, written)
            served.begin(served.suite.user_tasks.get(task.partition(" ")[2]))
        result = answer(served, request["method"], request.get("params", {}), log)
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


def answer(served: Suite, method: str, params: dict[str, Any], log: Path) -> dict[str, Any]:
    """Answer one request."""
    if method == "initialize":
        about = {"name": served.suite.name, "version": VERSION}
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": about,
        }
    if method == "tools/list":
        return {"tools": served.tools()}
    if method != "tools/call":
        return {}
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps([params["name"], params.get("arguments", {})]) + "\n")
    value, fault = served.call(params["name"], params.get("arguments", {}))
    text = fault or (value if isinstance(value, str) else json.dumps(value))
    return {"content": [{"type": "text", "text": text}], "isError": bool(fault)}


if __name__ == "__main__":
    if sys.argv[1] == "--dump":
        print(json.dumps(dump()))
    else:
        serve(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
