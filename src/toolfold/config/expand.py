"""Put environment variables into the strings of a server's entry."""

import re
from collections.abc import Mapping

from toolfold.errors import ConfigError

# `${VAR}` and `${VAR:-default}` as Claude Code writes them, `${env:VAR}` as Cursor and VS Code do.
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_INPUT = re.compile(r"\$\{input:([^}]*)\}")


def expand(text: str, environ: Mapping[str, str]) -> str:
    """Replace each variable once; what a variable holds is never expanded again.

    A variable that is set to nothing is set: the default stands in for an absent one only.

    Raises:
        ConfigError: A variable is not set and has no default, or only VS Code could ask for it.
    """
    if asked := _INPUT.search(text):
        raise ConfigError(
            f"needs the input {asked[1]!r}, which only VS Code asks for: use a ${{VARIABLE}}"
        )
    return _VARIABLE.sub(lambda match: _value(match, environ), text)


def _value(match: re.Match[str], environ: Mapping[str, str]) -> str:
    name, default = match[1], match[2]
    value = environ.get(name, default)
    if value is None:
        raise ConfigError(f"the variable {name} is not set and has no default")
    return value
