"""Recognise toolfold among the servers of a file, so that it never calls itself."""

import re
from itertools import pairwise

_RUNNERS = {"uvx", "npx", "bunx", "pnpx", "uv", "pipx", "npm", "pnpm", "yarn"}
_RUNNER_VERBS = {"run", "tool", "x", "exec", "dlx"}
_FLAGS_WITH_VALUE = {
    *("--from", "--with", "--python", "-p", "--package", "--spec", "--directory", "--project"),
    *("--index", "--index-url", "--default-index", "--extra-index-url", "--env-file"),
}


def is_toolfold(command: str, args: tuple[str, ...]) -> bool:
    """Whether a command starts toolfold, by itself or by a package runner such as `uvx`."""
    program = re.split(r"[/\\]", command)[-1].lower().removesuffix(".exe")
    if program == "toolfold" or ("-m", "toolfold") in pairwise(args):
        return True
    return program in _RUNNERS and _package(args) == "toolfold"


def _package(args: tuple[str, ...]) -> str | None:
    """Return the first argument that is no flag, no flag's value and no verb, without version."""
    for before, word in pairwise(("", *args)):
        is_word = not word.startswith("-") and before not in _FLAGS_WITH_VALUE
        if is_word and word not in _RUNNER_VERBS:
            return re.split(r"[@=<>~!\[]", word)[0]
    return None
