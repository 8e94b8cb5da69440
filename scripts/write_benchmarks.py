"""Write docs/benchmarks.md from the result files of bench/; a test holds it up to date.

Every figure is read from a file that a bench wrote. Targets are those of bench/targets.py today, so a
result that met an older target can miss.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BENCH = ROOT / "bench"
PAGE = ROOT / "docs" / "benchmarks.md"
sys.path.append(str(BENCH))

from report import MAX_CONTROL  # noqa: E402
from targets import TARGETS  # noqa: E402

_HEAD = """\
# Benchmarks

Made from the result files in [bench](../bench/README.md) by `scripts/write_benchmarks.py`. A target that was missed
is shown as missed. [bench/README.md](../bench/README.md) says what each figure is.
"""
_UNKNOWN_DAY = "on a day that its file does not hold"


def page() -> str:
    """Return docs/benchmarks.md."""
    times = json.loads((BENCH / "results.json").read_text(encoding="utf-8"))
    dojo = json.loads((BENCH / "agentdojo.json").read_text(encoding="utf-8"))
    agents = (BENCH / "agents" / "RESULTS.md").read_text(encoding="utf-8")
    parts = [_HEAD, _times(times), _agents(agents), _agentdojo(dojo), _not_kept(times)]
    return "\n".join(parts)


def _measured(results: dict[str, Any], command: str) -> str:
    day = results.get("measured_on")
    said = f"on {day}" if day else _UNKNOWN_DAY
    about = [f"Measured {said}"]
    if machine := results.get("machine"):
        about.append(f"on {machine['cores']} cores, {machine['system']} {machine['architecture']}")
    if versions := results.get("versions"):
        about.append("with " + ", ".join(f"{name} {each}" for name, each in versions.items()))
    return f"{', '.join(about)}. Again: `{command}`.\n"


def _times(results: dict[str, Any]) -> str:
    found = results["benchmarks"]
    rows = "\n".join(_time_row(name, each) for name, each in found.items())
    control = abs(found["control"]["ratio"]["median"] - 1)
    doubt = ""
    if control > MAX_CONTROL:
        doubt = (
            f"Equal work differed by {control:.1%} in this run, more than the {MAX_CONTROL:.0%} that "
            "`make bench` allows today: the figures are less certain than they look.\n\n"
        )
    worse = "\n".join(
        f"- {each['title']}: {each['ratio']['median']:.2f} times as long"
        for name, each in found.items()
        if name != "control" and not name.startswith("codemode") and each["ratio"]["median"] > 1.1
    )
    return f"""\
## Time

{_measured(results, "make bench")}
How long the subject takes, as a multiple of its baseline: the median of pairs that take turns, and their quartiles.
Rows of FastMCP CodeMode are the same job by that peer.

| work | ratio | quartiles | target | | pairs |
| --- | --- | --- | --- | --- | --- |
{rows}

{doubt}What is slower with toolfold:

{worse}

What it saves is tokens and turns of the model, which no row of this table counts.
"""


def _time_row(name: str, each: dict[str, Any]) -> str:
    ratio, target = each["ratio"], TARGETS.get(name)
    limit = "" if target is None else f"at most {target.limit:g}"
    verdict = "" if target is None else _verdict(target.holds(ratio["median"]))
    return (
        f"| {each['title']} | {ratio['median']:.2f} | {ratio['q1']:.2f} to {ratio['q3']:.2f} "
        f"| {limit} | {verdict} | {each['pairs']} |"
    )


def _verdict(holds: bool) -> str:
    return "met" if holds else "**missed**"


def _agents(text: str) -> str:
    """Return the newest section of the results with agents, as it was written."""
    [newest] = re.findall(r"^## ([^\n]+)\n\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL)[:1]
    return f"""\
## Agents

Twelve tasks in one conversation, by fresh agents that had the brief of their door and nothing else. All rounds, and
how to repeat them: [bench/agents](../bench/agents/RESULTS.md). The newest, {newest[0]}:

{newest[1].strip()}
"""


def _agentdojo(results: dict[str, Any]) -> str:
    injections, computed = results["injections"], results["computed"]
    target = TARGETS["agentdojo-unasked"]
    rows = [
        (
            f"goals of injections that were reached, of {injections['goals']} "
            f"({injections['reached_without']} without the preset)",
            str(len(injections["executed"])),
            "0",
            _verdict(not injections["executed"]),
        ),
        (
            f"tasks that run without a question, of {results['tasks']}",
            f"{results['unasked']:.1%}",
            f"at least {target.limit:.0%}",
            _verdict(target.holds(results["unasked"])),
        ),
        (
            "the same, with values computed from answers",
            f"{computed['unasked_of_all']:.1%}",
            "",
            "",
        ),
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"""\
## Injections

{results["what"]}. {_measured(results, "make agentdojo")}
| figure | result | target | |
| --- | --- | --- | --- |
{table}
"""


def _not_kept(times: dict[str, Any]) -> str:
    kept = {*times["benchmarks"], "agentdojo-unasked"}
    rows = "\n".join(
        f"| `{name}` | {'at least' if target.is_least else 'at most'} {target.limit:g} | {target.set_on} |"
        for name, target in TARGETS.items()
        if name not in kept
    )
    return f"""\
## Held to a target, with no result in a file

`make bench` measures these, prints them beside their peers (FastMCP, mcp-memory-service, server-memory, presidio-rs)
and fails where one misses its target. No file keeps the figures, so this page cannot show them.

| figure | target | set on |
| --- | --- | --- |
{rows}

Not measured at all: ContextForge.
"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
