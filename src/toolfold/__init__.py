"""Fold every tool an agent has into one."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolfold.client.client import Client

__all__ = ["Client"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Load what is offered here when it is first used, so that importing us costs nothing."""
    if name == "Client":
        from toolfold.client.client import Client  # noqa: PLC0415

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
