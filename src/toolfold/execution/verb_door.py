"""The doors to memory itself: scripts, hooks, commands and clients that see nothing else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from toolfold.catalog.questions import Elicitor
from toolfold.config.config import Config
from toolfold.execution.access import Reach, VerbAccess
from toolfold.execution.border import Border
from toolfold.execution.context import Door
from toolfold.journal.runs import Origin

_MAX_KNOWN: Final = 50

MakeBorder = Callable[[Config, str], tuple[Border, Reach]]
"""Makes the border of a configuration for a namespace, and what is reached beyond it."""

CALLERS: Final[dict[Door, str]] = {
    "memory": "The client",
    "script": "A script",
    "hook": "A hook",
    "terminal": "The user",
    "rest": "The user",
}
"""What the journal calls who came by a door."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbDoor:
    """Lets one caller have verbs done, each as the rules say."""

    border: Border
    reach: Reach
    origin: Origin
    door: Door
    ask: Elicitor | None = None
    """Puts a question to the person who asks; None where nobody can be asked."""

    async def call(
        self,
        path: str,
        arguments: Mapping[str, Any],
        *,
        form: Callable[[Any], Any],
        **options: Any,
    ) -> Any:
        """Have a verb done; `form` makes of its answer what the caller gets.

        Raises:
            ToolfoldError: A rule forbids it, or it failed.
        """
        access = VerbAccess(self.reach, path, dict(arguments), form=form, **options)
        code = f"# {CALLERS[self.door]} called {path}."
        return await self.border.single(access, self.origin, self.door, code=code, ask=self.ask)


class _KnownBorder(NamedTuple):
    config: Config
    namespace: str
    border: Border
    reach: Reach


class VerbDoors:
    """The doors to memory in one process. Who comes again is known: calls count on from before."""

    def __init__(self, make: MakeBorder) -> None:
        self._make = make
        self._known: list[_KnownBorder] = []

    def enter(
        self,
        config: Config,
        origin: Origin,
        door: Door,
        *,
        namespace: str = "",
        ask: Elicitor | None = None,
    ) -> VerbDoor:
        """Let somebody in, to the namespace of a configuration unless another is named."""
        known = self._border(config, namespace or config.notes_namespace)
        return VerbDoor(border=known.border, reach=known.reach, origin=origin, door=door, ask=ask)

    def _border(self, config: Config, namespace: str) -> _KnownBorder:
        for place, known in enumerate(self._known):
            if known.namespace == namespace and known.config == config:
                self._known.append(self._known.pop(place))
                return known
        self._known.append(_KnownBorder(config, namespace, *self._make(config, namespace)))
        del self._known[:-_MAX_KNOWN]
        return self._known[-1]
