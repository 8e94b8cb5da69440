"""Guest modules as pydantic-monty takes them."""

from collections.abc import Callable
from typing import Any

import pydantic_monty as monty

from toolfold.sandbox.sandbox import Modules


def native_modules(
    modules: Modules,
) -> dict[str, monty.ExternalModule | Callable[[], monty.ExternalModule]]:
    """Return `modules` as the interpreter takes them: made when first imported."""
    return {name: _ModuleFactory(make) for name, make in modules.items()}


class _ModuleFactory:
    """Makes the interpreter's module on first import."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __call__(self) -> monty.ExternalModule:
        module = self._make()
        functions = dict.fromkeys(module.functions, _never_called)
        return monty.ExternalModule(functions, stubs=module.stub)


def _never_called(*_: object, **__: object) -> None:
    """Stand for a host function. Calls reach `Drive` as snapshots instead."""
    raise AssertionError
