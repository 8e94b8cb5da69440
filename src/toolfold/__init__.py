"""Fold every tool an agent has into one."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolfold.client.client import Client, ToolfoldError

__all__ = ["Client", "ToolfoldError"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Load what is offered here when it is first used, so that importing us costs nothing."""
    if name in __all__:
        from toolfold.client import client  # noqa: PLC0415

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
