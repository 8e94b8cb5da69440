"""What the user wants of session hooks."""

from dataclasses import dataclass

from toolfold.config.layers import COUNT, OWN_AMOUNT, OWN_TEXT, STRICT_WHEN_FALSE, WAYS, SettingKind
from toolfold.relay.hooks import settings as hook_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSettings:
    """The table `[hooks]`. A project may switch hooks off, and has no say in what they ask."""

    session_start: bool = True
    """Whether notes are shown to the model when a conversation begins."""

    prompt: bool = True
    """Whether notes are shown when it turns to something else, or asks for them."""

    pre_compact: bool = True
    """Whether a conversation is recorded before the client shortens it."""

    session_end: bool = True
    """Whether it is recorded when it ends."""

    notes: int = hook_settings.NOTES
    """How many notes a conversation begins with, at most."""

    budget_tokens: int = hook_settings.BUDGET_TOKENS
    """How many tokens they may take; a prompt gets a third."""

    timeout_s: float = hook_settings.TIMEOUT_S
    """How long a client may be kept waiting."""

    prompt_timeout_s: float = hook_settings.PROMPT_TIMEOUT_S
    """The same for a prompt, behind which a person waits."""

    ways: tuple[str, ...] = hook_settings.WAYS
    """Who is asked, one after the other until one answers."""

    server: str = ""
    """The MCP server to ask last, by its name in the user's `mcp.json`."""

    message: bool = True
    """Whether the user is told in a line what was shown, and how many tokens that saves."""

    metrics: bool = False
    """Whether every hook is logged with the time that it took, not only one that fails."""


KINDS: dict[str, SettingKind] = {
    **dict.fromkeys(("session_start", "prompt", "pre_compact", "session_end"), STRICT_WHEN_FALSE),
    **dict.fromkeys(("notes", "budget_tokens"), COUNT),
    **dict.fromkeys(("timeout_s", "prompt_timeout_s"), OWN_AMOUNT),
    "ways": WAYS,
    "server": OWN_TEXT,
    **dict.fromkeys(("message", "metrics"), STRICT_WHEN_FALSE),
}
