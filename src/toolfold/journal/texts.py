"""What a model writes and reads, as the texts that the ledger counts. Pure, and light."""

import json


def call_text(name: str, arguments: str) -> str:
    """Return a call as a model writes it; the arguments are JSON already."""
    return f'{{"name":{compact(name)},"arguments":{arguments}}}'


def code_text(code: str) -> str:
    """Return the call that runs code."""
    return call_text("execute_code", compact({"code": code}))


def tool_text(path: str, arguments: str) -> str:
    """Return the direct call of the tool at a path."""
    return call_text(path.partition(".")[2] or path, arguments)


def answer_text(answer: str) -> str:
    """Return an answer as a model reads it: JSON as it is, a text without its quotes."""
    if not answer.startswith('"'):
        return answer
    try:
        return str(json.loads(answer))
    except ValueError:
        return answer  # only its head was kept


def compact(value: object) -> str:
    """Return JSON without a blank too many."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
