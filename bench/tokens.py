"""Count the tokens of discovery: replies of search and describe, and what a task costs.

Real texts of recorded catalogues, counted with a real vocabulary. `--plot FILE` draws the curve of
tokens for a finished task over the number of tools.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from stage import ROOT, Stage, Unavailable

from toolfold.catalog.names import function_names, module_names
from toolfold.catalog.search.discovery import ToolIndex
from toolfold.catalog.stubs import brief, render_stub
from toolfold.catalog.tool import ListedTool, Tool
from toolfold.relay.surface import execute_code
from toolfold.tokens import count_tokens

CATALOGUE = ROOT.parent / "shared" / "data" / "catalogue"
MAX_TOKENS = {"search reply, five brief hits": 230, "stub": 150}
SETS = {
    9: ["memory"],
    31: ["memory", "filesystem", "slack"],
    93: ["memory", "filesystem", "slack", "notion", "github-legacy", "git"],
    504: ["github", "slack", "notion", "salesforce", "google-workspace", "atlassian", "playwright"],
    838: [],
}


def main() -> int:
    """Print the tables; fail where a reply is larger than promised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the curve into this file")
    parser.add_argument("--tools", default=ROOT / ".tools", type=Path, metavar="DIR")
    arguments = parser.parse_args()
    if not CATALOGUE.is_dir():
        print("tokens: skipped, the recorded catalogues are not on this machine")
        return 0
    status = _print_replies(load([]), arguments.tools)
    curve = {size: _task_tokens(load(servers)) for size, servers in SETS.items()}
    _print_curve(curve)
    if arguments.plot:
        _plot(curve, arguments.plot)
    return status


def load(servers: Sequence[str]) -> list[Tool]:
    """Return the tools of these recorded servers, or of all."""
    names = list(servers) or sorted(path.stem for path in CATALOGUE.glob("*.json"))
    modules = module_names(names)
    tools: list[Tool] = []
    for name in names:
        recorded = json.loads((CATALOGUE / f"{name}.json").read_text(encoding="utf-8"))["tools"]
        functions = function_names(tool["name"] for tool in recorded)
        tools += [
            Tool(
                server=name,
                module=modules[name],
                function=functions[tool["name"]],
                listed=ListedTool(
                    name=tool["name"],
                    description=tool.get("description") or "",
                    input_schema=tool["inputSchema"],
                    output_schema=tool.get("outputSchema"),
                ),
            )
            for tool in recorded
        ]
    return tools


def _query(tool: Tool) -> str:
    return tool.listed.description.split(".")[0][:120] or tool.function.replace("_", " ")


def _search(index: ToolIndex, query: str, limit: int = 5) -> str:
    return "\n".join(map(brief, index.search(query, limit=limit).hits))


def _print_replies(tools: list[Tool], installed: Path) -> int:
    """Print how large replies are, next to FastMCP's to the same questions."""
    index = ToolIndex(tools)
    ours = {
        "search reply, five brief hits": [count_tokens(_search(index, _query(t))) for t in tools],
        "stub": [count_tokens(render_stub(tool)) for tool in tools],
    }
    theirs = _codemode_replies(tools, installed)
    print(f"\ntokens of replies over {len(tools)} tools (o200k)")
    print(f"{'':32}{'p10':>7}{'p50':>7}{'p90':>7}{'max':>7}")
    for name, counts in ours.items():
        print(_distribution(f"toolfold {name}", counts))
    for name, counts in theirs.items():
        print(_distribution(f"FastMCP {name}", counts))
    medians = {name: statistics.median(counts) for name, counts in ours.items()}
    promised = (f"{name} {MAX_TOKENS[name]} ({found:g})" for name, found in medians.items())
    print(f"promised, each in the median: {', '.join(promised)}")
    return 0 if all(medians[name] <= most for name, most in MAX_TOKENS.items()) else 1


def _distribution(name: str, counts: list[int]) -> str:
    tenths = statistics.quantiles(counts, n=10)
    figures = (tenths[0], tenths[4], tenths[8], max(counts))
    return f"{name[:32]:32}" + "".join(f"{figure:7.0f}" for figure in figures)


def _codemode_replies(tools: list[Tool], installed: Path) -> dict[str, list[int]]:
    names = {f"{tool.module}_{tool.function}": tool for tool in tools}
    asked = {
        "tools": {
            name: {"description": tool.listed.description, "inputSchema": tool.listed.input_schema}
            for name, tool in names.items()
        },
        "queries": [_query(tool) for tool in tools],
        "names": list(names),
    }
    worker = Path(__file__).parent / "workers" / "codemode_answers.py"
    with tempfile.TemporaryDirectory() as directory:
        try:
            python = Stage(installed, Path(directory)).codemode()
        except Unavailable as reason:
            print(f"FastMCP: skipped, {reason}")
            return {}
    done = subprocess.run(
        [python, worker], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    answers = json.loads(done.stdout)
    return {
        "search reply, limit 5": [count_tokens(text) for text in answers["searches"]],
        "get_schema": [count_tokens(text) for text in answers["schemas"]],
    }


def _task_tokens(tools: list[Tool]) -> dict[str, float]:
    """Return what a task with two tools costs in each way: the mean over pairs of targets."""
    targets = [tool for tool in tools if tool.server == tools[0].server][:9]
    index = ToolIndex(tools)
    door = count_tokens(_compact([_shown(execute_code(_modules(tools)))]))
    loaded = count_tokens(_compact([_listed(tool) for tool in tools]))
    preloaded = count_tokens("\n".join(map(render_stub, tools)))
    totals: dict[str, list[int]] = {"definitions": [], "stubs": [], "on demand": []}
    for first, second in zip(targets, targets[1:] + targets[:1], strict=True):
        pair = (first, second)
        code, reply = _code(pair), "\n".join(map(_answer, pair))
        work = count_tokens(code) + count_tokens(reply)
        direct = sum(count_tokens(_arguments(t)) + count_tokens(_answer(t)) for t in pair)
        totals["definitions"].append(loaded + direct)
        totals["stubs"].append(door + preloaded + work)
        totals["on demand"].append(door + sum(_finding(index, pair)) + work)
    return {way: statistics.mean(counts) for way, counts in totals.items()}


def _finding(index: ToolIndex, pair: tuple[Tool, Tool]) -> Iterable[int]:
    """Yield the tokens of searching for two tools and describing them, calls and replies."""
    queries = [_query(tool) for tool in pair]
    yield count_tokens("import tools\n" + "\n".join(f"print(tools.search({q!r}))" for q in queries))
    for tool, query in zip(pair, queries, strict=True):
        yield count_tokens(_search(index, query))
        if tool not in index.search(query, limit=5).hits:
            yield count_tokens(_search(index, query, limit=20))
    names = ", ".join(repr(tool.path) for tool in pair)
    yield count_tokens(f"import tools\nprint(tools.describe({names}))")
    yield count_tokens("\n\n".join(map(render_stub, pair)))


def _code(pair: Iterable[Tool]) -> str:
    lines = [f"print({tool.path}(**{_example(tool)!r}))" for tool in pair]
    return "\n".join([*(f"import {tool.module}" for tool in pair), *lines])


def _example(tool: Tool) -> dict[str, str]:
    required = tool.listed.input_schema.get("required")
    return {str(name): "example" for name in required} if isinstance(required, list) else {}


def _arguments(tool: Tool) -> str:
    return _compact({"name": tool.listed.name, "arguments": _example(tool)})


def _answer(tool: Tool) -> str:
    return _compact({"tool": tool.listed.name, "arguments": _example(tool)})


def _modules(tools: Iterable[Tool]) -> list[str]:
    return sorted({tool.module for tool in tools})


def _shown(tool: dict[str, Any]) -> dict[str, Any]:
    """Return what a model sees of a definition."""
    return {key: tool[key] for key in ("name", "description", "inputSchema")}


def _listed(tool: Tool) -> dict[str, Any]:
    listed = tool.listed
    return {
        "name": listed.name,
        "description": listed.description,
        "inputSchema": listed.input_schema,
    }


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _print_curve(curve: dict[int, dict[str, float]]) -> None:
    print("\ntokens for a finished task that uses two tools, each text counted once")
    ways = list(next(iter(curve.values())))
    print(f"{'tools':>6}" + "".join(f"{way:>14}" for way in ways))
    for size, costs in curve.items():
        print(f"{size:>6}" + "".join(f"{costs[way]:>14,.0f}" for way in ways))
    for way in ("definitions", "stubs"):
        print(f"finding on demand costs less than {way} from {_break_even(way)} tools of memory on")


def _break_even(way: str) -> int | str:
    """Return the fewest tools of the smallest set with which finding them costs less."""
    tools = load(SETS[min(SETS)])
    for count in range(2, len(tools) + 1):
        costs = _task_tokens(tools[:count])
        if costs["on demand"] < costs[way]:
            return count
    return f"more than {len(tools)}"


def _plot(curve: dict[int, dict[str, float]], file: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), dpi=130)
    labels = {
        "definitions": "all definitions loaded",
        "stubs": "all stubs preloaded",
        "on demand": "found on demand (toolfold)",
    }
    for way, style in zip(labels, ("o-", "s-", "D-"), strict=True):
        costs = [curve[size][way] for size in curve]
        axes.plot(list(curve), costs, style, label=labels[way])
        axes.annotate(f"{costs[-1]:,.0f}", (max(curve), costs[-1]), (6, 0),
                      textcoords="offset points", va="center", fontsize=9)  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="tools connected", ylabel="tokens")
    axes.set_xticks(list(curve), [str(size) for size in curve])
    axes.minorticks_off()
    axes.set_xlim(7, 1700)
    axes.set_title("Tokens for a finished task that uses two tools", fontsize=11)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(frameon=False)
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)


if __name__ == "__main__":
    sys.exit(main())
