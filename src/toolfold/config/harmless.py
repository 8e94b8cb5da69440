"""What of a server's entry may be shown to anybody: only what is surely no secret."""

import re

MASK = "•••"

_REFERENCE = re.compile(
    r"((?:Authorization: )?(?:Bearer )?\$\{(?:(?:env|input|config|command):)?\w+)(:-.*)?\}"
)
_PROGRAM = re.compile(r"(?:[^\s=]*[/\\])?([\w.+@-]{1,64})")
_ADDRESS = re.compile(
    r"((?:https?|wss?)://)(?:[^/?#@]*@)?((?:[\w.-]+|\[[\da-f:]+\]|\$\{\w+\})(?::\d+)?)([^?#@]*)([^@]*)",
    re.IGNORECASE,
)
_COMMON_PATH = re.compile(r"(?:/(?:api|mcp|sse|v\d{1,2}))*/?")
# One letter or words: `-pSECRET` is the flag `-p` and what it is given.
_FLAG = re.compile(r"-[A-Za-z]|--[a-z]+(?:-[a-z]+)*")
_FLAG_AND_VALUE = re.compile(rf"({_FLAG.pattern})=.*", re.DOTALL)
_PACKAGE = re.compile(
    r"@[a-z0-9-]+/[a-z0-9-]+(?:@[\d.]+|@latest)?"
    r"|(?:[a-z]+-)*(?:mcp|server)(?:-[a-z]+)*(?:@[\d.]+|@latest)?"
    r"|toolfold|run|exec|dlx"
)


def program(command: str) -> str:
    """Return the name of the program without its directory, if the command is nothing else."""
    found = _PROGRAM.fullmatch(command)
    return found[1] if found else MASK


def program_path(command: str) -> str:
    """Return a command as it is written, if it is nothing but a path or a name."""
    return MASK if program(command) == MASK else command


def address(url: str) -> str:
    """Return scheme and host of a URL, and its path if it is one that many servers have."""
    found = _ADDRESS.fullmatch(url)
    if found is None:
        return reference(url)
    scheme, host, path, query = found.groups()
    end = f"?{MASK}" if query else ""
    return f"{scheme}{host}{path if _COMMON_PATH.fullmatch(path) else f'/{MASK}'}{end}"


def argument(word: str) -> str:
    """Return a bare flag, a flag without its value, or the name of a package."""
    if _FLAG.fullmatch(word) or _PACKAGE.fullmatch(word):
        return word
    found = _FLAG_AND_VALUE.fullmatch(word)
    return f"{found[1]}={MASK}" if found else reference(word)


def reference(text: str) -> str:
    """Return a variable without its default, alone or as a bearer token."""
    found = _REFERENCE.fullmatch(text)
    if found is None:
        return MASK
    return f"{found[1]}:-{MASK}}}" if found[2] else text
