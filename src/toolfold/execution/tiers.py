"""Which interpreter runs a program: decided from its text, before anything has happened.

Monty is quicker to start and lives on every system; CPython runs everything, behind walls that only
Linux has.
"""

import sys
from collections.abc import Iterable
from typing import Final, Literal, Protocol

from toolfold.errors import CodeRejected, RunCrashed
from toolfold.execution.analysis.advice import AVAILABLE
from toolfold.execution.analysis.gaps import MISSING_BUILTINS
from toolfold.execution.analysis.plan import ProgramPlan
from toolfold.sandbox.sandbox import GuestFailure, Sandbox

Tier = Literal["monty", "cpython"]

_WORTH_ANOTHER_TRY: Final = frozenset({"error", "unsupported", "value"})


class Tiers:
    """The interpreters that there are, and the choice between them."""

    def __init__(
        self,
        monty: Sandbox,
        cpython: "ConfinedSandbox | None",
        *,
        setting: str = "auto",
    ) -> None:
        self._monty = monty
        self._cpython = None if setting == "monty" else cpython
        self._setting = setting

    @property
    def packages(self) -> frozenset[str]:
        """Return the packages beside the standard library that CPython has here."""
        return self._cpython.packages if self._cpython else frozenset()

    @property
    def has_cpython(self) -> bool:
        """Whether CPython can be had, as far as is known."""
        return self._cpython is not None and self._cpython.fault is None

    @property
    def monty_is_walled(self) -> bool:
        """Whether walls of the kernel stand around Monty as well."""
        return getattr(self._monty, "binary", None) is not None

    def missed(self, plan: ProgramPlan, tool_modules: Iterable[str]) -> str | None:
        """Say why a program that needs CPython cannot have it; None if it can, or may not."""
        cpython = self._cpython
        if cpython is None or not self._needs_cpython(plan, frozenset(tool_modules)):
            return None
        return cpython.fault

    async def examine(self) -> tuple[bool, str]:
        """Try CPython, and say how it stands with it."""
        cpython = self._cpython
        if cpython is None:
            return False, 'switched off by sandbox = "monty"'
        try:
            await cpython.warm()
        except RunCrashed as error:
            return False, str(error)
        walls = {
            "namespaces": "namespaces, Landlock and seccomp",
            "landlock": "Landlock and seccomp",
        }[cpython.level or "landlock"]
        if why := cpython.shortfall:
            walls += f" (not more, because {why})"
        packages = ", ".join(sorted(cpython.packages & {"numpy", "pandas"}))
        return True, f"behind {walls}; the standard library{packages and f', {packages}'}"

    def sandbox(self, tier: Tier) -> Sandbox:
        """Return where programs of a tier run."""
        if tier == "cpython" and self._cpython is not None:
            return self._cpython
        return self._monty

    def choose(self, plan: ProgramPlan, tool_modules: Iterable[str]) -> Tier:
        """Return the tier for a program, as far as its text tells.

        Raises:
            CodeRejected: The user wants CPython and nothing else, and it is not there.
        """
        if not self.has_cpython:
            if self._setting == "cpython" and self._cpython is not None:
                raise CodeRejected(f"Nothing was run. {why_not(self._cpython.fault)}")
            return "monty"
        if self._setting == "cpython" or self._needs_cpython(plan, frozenset(tool_modules)):
            return "cpython"
        return "monty"

    def may_try_again(self, tier: Tier, failure: GuestFailure | None) -> bool:
        """Whether a program that failed, having called nothing, may do better on CPython."""
        return (
            failure is not None
            and tier == "monty"
            and failure.kind in _WORTH_ANOTHER_TRY
            and self.has_cpython
        )

    def _needs_cpython(self, plan: ProgramPlan, tool_modules: frozenset[str]) -> bool:
        elsewhere = (sys.stdlib_module_names | self.packages) - set(AVAILABLE) - tool_modules
        return (
            bool(plan.unsupported)
            or not plan.imports.isdisjoint(elsewhere)
            or not plan.names.isdisjoint(MISSING_BUILTINS)
            or bool(plan.deviations)
            or plan.may_fail
        )


def why_not(fault: str | None) -> str:
    """Say that the user's choice cannot be had."""
    return f'The setting sandbox = "cpython" cannot be kept here: {fault}.'


class ConfinedSandbox(Sandbox, Protocol):
    """A sandbox that may turn out not to be there."""

    @property
    def fault(self) -> str | None:
        """Say why guest code cannot run in it; None if it can, as far as is known."""
        ...

    @property
    def level(self) -> Literal["namespaces", "landlock"] | None:
        """Return which walls stand; None before the first session."""
        ...

    @property
    def shortfall(self) -> str | None:
        """Say why no better walls stand; None if they do."""
        ...

    @property
    def packages(self) -> frozenset[str]:
        """Return the packages beside the standard library that guest code can import."""
        ...

    async def warm(self) -> None:
        """Start now what would be started with the first session."""
        ...
