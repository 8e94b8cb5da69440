"""What is known of a session, and how it is written before its state."""

from dataclasses import dataclass, field
from typing import Any

from toolfold.execution.sessions.bindings import Bindings
from toolfold.execution.tiers import Tier
from toolfold.sandbox.sandbox import Frozen, SessionState


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """What is known of a session beside its state."""

    name: str
    tier: Tier = "monty"
    interpreter: str = ""
    """What wrote the state: no other can read it."""
    created_at: float = 0.0
    used_at: float = 0.0
    runs: int = 0
    """How many have ended in it."""
    generation: str = ""
    """What tells its variables from those before and after; empty while it has none."""
    size_bytes: int = 0
    bindings: Bindings = field(default_factory=Bindings)


def header_of(info: SessionInfo, state: SessionState) -> dict[str, Any]:
    """Return what is written of a session before its state."""
    frozen = state if isinstance(state, Frozen) else Frozen(state=b"", programs=0, awaited={})
    return {
        "name": info.name,
        "tier": info.tier,
        "interpreter": info.interpreter,
        "created_at": info.created_at,
        "used_at": info.used_at,
        "runs": info.runs,
        "generation": info.generation,
        "size_bytes": info.size_bytes,
        "names": list(info.bindings.names),
        "imports": dict(info.bindings.imports),
        "definitions": dict(info.bindings.definitions),
        "constants": dict(info.bindings.constants),
        "programs": frozen.programs,
        "awaited": {str(number): sorted(calls) for number, calls in frozen.awaited.items()},
    }


def frozen_in(header: dict[str, Any], content: bytes) -> Frozen:
    """Return the variables that were written with a header."""
    awaited = {int(number): frozenset(calls) for number, calls in header["awaited"].items()}
    return Frozen(state=content, programs=header["programs"], awaited=awaited)


def info_in(header: dict[str, Any]) -> SessionInfo:
    """Return what a header says."""
    return SessionInfo(
        name=header["name"],
        tier=header["tier"],
        interpreter=header["interpreter"],
        created_at=header["created_at"],
        used_at=header["used_at"],
        runs=header["runs"],
        generation=header["generation"],
        size_bytes=header["size_bytes"],
        bindings=Bindings(
            names=tuple(header["names"]),
            imports=header["imports"],
            definitions=header["definitions"],
            constants=header["constants"],
        ),
    )
