"""Score stages: `agent_score.py DIR...`. Answers and state count, not words."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import agent_tasks

from toolfold.tokens import count_tokens


def numbers(root: Path) -> list[int]:
    """Return the tasks that a stage has."""
    text = (root / "tasks.md").read_text()
    return [int(each) for each in re.findall(r"^(\d+)\. ", text, re.MULTILINE)]


def is_solved(root: Path, number: int) -> bool:
    """Whether the answer is right and what was to be done is done."""
    try:
        answer = json.loads((root / "answers" / f"{number:02}.json").read_text())
    except (OSError, ValueError):
        return False
    right = agent_tasks.right_answers()[number - 1]
    return _equal(answer, right) and agent_tasks.TASKS[number - 1].state(root)


def _equal(answer: Any, right: Any) -> bool:
    if isinstance(right, float) and isinstance(answer, int | float):
        return (
            abs(answer - right) < 0.0501 if right == round(right, 1) else abs(answer - right) < 6e-4
        )
    if isinstance(right, dict) and isinstance(answer, dict):
        return answer.keys() == right.keys() and all(_equal(answer[k], right[k]) for k in right)
    if isinstance(right, list) and isinstance(answer, list):
        return len(answer) == len(right) and all(map(_equal, answer, right))
    return bool(answer == right) and isinstance(answer, bool) == isinstance(right, bool)


def score(root: Path) -> dict[str, Any]:
    """Return the figures of one stage."""
    log = root / "calls.jsonl"
    calls = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    failed = [call for call in calls if call["error"]]
    wanted = numbers(root)
    arguments = sum(count_tokens(json.dumps(call["arguments"])) for call in calls)
    return {
        "solved": sum(is_solved(root, number) for number in wanted),
        "tasks": len(wanted),
        "unsolved": [number for number in wanted if not is_solved(root, number)],
        "calls": len(calls),
        "failed": len(failed),
        "tasks_without_failure": len(wanted) - len({str(call["task"]) for call in failed}),
        "tokens": arguments + sum(count_tokens(call["text"]) for call in calls),
        "definitions": count_tokens((root / "tools.json").read_text()),
    }


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(argument, json.dumps(score(Path(argument))))
