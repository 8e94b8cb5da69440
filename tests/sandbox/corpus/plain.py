"""Run snippets in the plain interpreter: `python -I plain.py FILE...`, one line of JSON for each.

Standard library only, and nothing of toolfold: this is what the sandboxes are compared with. Each
snippet has a process of its own. A tool's answer can be used as it is, and awaited.
"""

import ast
import asyncio
import importlib
import inspect
import io
import json
import os
import sys
import traceback
import types
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import shop

sys.path.pop(0)


def run(path: str) -> dict[str, Any]:
    """Return what the snippet printed and the value of its last line, or why it failed."""
    output = io.StringIO()
    sys.modules["shop"] = _shop()
    try:
        with redirect_stdout(output):
            value = _evaluate(Path(path).read_text(encoding="utf-8"))
    except BaseException:  # noqa: BLE001
        return {"output": output.getvalue(), "error": traceback.format_exc()}
    return {"output": output.getvalue(), "value": value}


def _evaluate(code: str) -> Any:
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    scope: dict[str, Any] = {"__name__": "__main__"}
    loop = asyncio.new_event_loop()

    def step(node: ast.Module | ast.Expression, mode: str) -> Any:
        compiled = compile(node, "code", mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(compiled, scope)
        awaits = compiled.co_flags & inspect.CO_COROUTINE
        return loop.run_until_complete(result) if awaits else result

    step(tree, "exec")
    return step(ast.Expression(last.value), "eval") if isinstance(last, ast.Expr) else None


def _shop() -> types.ModuleType:
    module = types.ModuleType("shop")
    for name, (function, _, _) in shop.TOOLS.items():
        setattr(module, name, _tool(name, function))
    return module


def _tool(name: str, function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return _awaitable(function(*args, **kwargs))
        except shop.Refused as refusal:
            raise RuntimeError(f"shop.{name} failed: {refusal}") from None

    return call


def _awaitable(value: Any) -> Any:
    """Return a value that equals `value` and that `await` gives back."""

    class Answer(type(value)):  # type: ignore[misc]
        __hash__ = object.__hash__  # `gather` keeps what it is given in a dict

        def __await__(self) -> Any:
            yield from asyncio.sleep(0).__await__()
            return value

    return Answer(value)


def _in_a_process_of_its_own(path: str) -> str:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w", encoding="utf-8") as pipe:
            pipe.write(json.dumps(run(path), default=_in_json))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        line = pipe.read()
    os.waitpid(child, 0)
    return line


def _in_json(value: Any) -> Any:
    return sorted(value) if isinstance(value, set | frozenset) else f"<{type(value).__name__}>"


if __name__ == "__main__":
    for package in ("numpy", "pandas"):  # once, instead of in each process
        with suppress(ImportError):
            importlib.import_module(package)
    for each in sys.argv[1:]:
        print(_in_a_process_of_its_own(each), flush=True)
