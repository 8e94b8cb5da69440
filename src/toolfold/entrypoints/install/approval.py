"""Who asks about tools that change something, for each client, and how that is changed."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from toolfold.config.config import Config, current_directory, environment
from toolfold.entrypoints.install.clients import ClientName, InstallContext, claude_settings
from toolfold.entrypoints.install.found import found_clients
from toolfold.entrypoints.install.jsontext import JsonText
from toolfold.errors import ConfigError
from toolfold.execution.trust.asked_clients import CLIENTS_FILE, AskedClients

_PLUGIN: Final = "toolfold"
_HOOK: Final = "toolfold hook pre-tool-use"
_PROGRAMS: Final[dict[ClientName, str]] = {"vscode": "visual studio code"}
"""How a client calls itself, where that is not what we call it."""

_EACH: Final = "before each program that changes something"
_ASKS: Final = "it asks you before destructive calls if it can show questions"
_DECIDES: Final = "its own permission for `execute_code` decides"


def approval_ways(config: Config) -> list[tuple[ClientName, str]]:
    """Say of each client that has toolfold in which way its user is asked."""
    context = InstallContext(
        directories=config.directories, environ=environment(), cwd=current_directory()
    )
    automatic = AskedClients(config.directories.state / CLIENTS_FILE).names()
    found = found_clients(config.directories, context.environ, context.cwd)
    approvals = config.settings.approvals
    by_plugin = {"claude"} if has_plugin(_claude_settings_texts(context)) else set()
    return [
        (each.client, approval_way(each.client, approvals, context, automatic))
        for each in found
        if each.is_installed or each.client in by_plugin
    ]


def approval_way(
    client: ClientName,
    approvals: str,
    context: InstallContext,
    automatic: Iterable[str],
    *,
    is_hooked: bool = False,
) -> str:
    """Say in which way a client's user is asked; `automatic` are clients that ask nobody."""
    if approvals == "never":
        return 'it never asks (approvals = "never")'
    if approvals == "always":
        return f'{_ASKS}; otherwise the run waits for you (approvals = "always")'
    if is_hooked or (client == "claude" and has_program_hook(context)):
        return f"its hook asks you {_EACH}"
    program = _PROGRAMS.get(client, client)
    if any(program in name.lower() for name in automatic):
        return (
            f"it refuses questions without showing them, so {_DECIDES}; "
            '`approvals = "always"` makes runs wait for you'
        )
    hint = f". `toolfold install claude --hooks` makes it ask {_EACH}" if client == "claude" else ""
    return f"{_ASKS}; otherwise {_DECIDES}{hint}"


def has_program_hook(context: InstallContext) -> bool:
    """Whether our hook is in the settings of Claude Code, by itself or with our plugin."""
    texts = _claude_settings_texts(context)
    return any(_HOOK in text for text in texts) or has_plugin(texts)


def _claude_settings_texts(context: InstallContext) -> list[str]:
    texts = []
    for path in claude_settings(context):
        with suppress(OSError):
            texts.append(path.read_text(encoding="utf-8", errors="replace"))
    return texts


def has_plugin(texts: Iterable[str]) -> bool:
    """Whether settings of Claude Code have our plugin switched on; later ones go before others."""
    enabled: dict[str, bool] = {}
    for text in texts:
        with suppress(ConfigError):
            found = JsonText.parse(text).servers(("enabledPlugins",))
            enabled.update((name, bool(value)) for name, value in found.items())
    return any(value for name, value in enabled.items() if name.partition("@")[0] == _PLUGIN)
