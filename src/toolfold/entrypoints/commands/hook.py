"""`toolfold hook`, and the child in which a hook opens the store itself where no daemon answers."""

import json
import sys
from argparse import Namespace
from typing import Any

import anyio

from toolfold.app import running_stores, verb_doors
from toolfold.config.config import environment, load_config
from toolfold.entrypoints.hooks.service import Hooks
from toolfold.errors import BadInput
from toolfold.relay.wire import MAX_LINE


def answer_in_own_process(_arguments: Namespace) -> int:
    """Answer the question on standard input, and print the answer as JSON."""
    question = _question(sys.stdin.buffer.read(MAX_LINE))
    print(json.dumps(anyio.run(_answer, question)))
    return 0


def hook(arguments: Namespace) -> int:
    """Do as the relay does, which is how it begins but for odd options."""
    from toolfold.relay.hooks.hook import hook as run

    return run([arguments.name], environment())


async def _answer(question: dict[str, Any]) -> dict[str, Any]:
    if isinstance(name := question.get("server"), str):
        from toolfold.entrypoints.hooks.server import answer_by_server

        return await answer_by_server(name, question)
    config = load_config()
    async with running_stores(config) as stores:
        return await Hooks(verb_doors(stores)).answer(config, question)


def _question(content: bytes) -> dict[str, Any]:
    try:
        question = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"The question is not JSON: {error}.") from error
    if not isinstance(question, dict):
        raise BadInput("The question is not an object.")
    return question
