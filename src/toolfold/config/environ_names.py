"""Which variables of a client's environment its configuration names."""

from collections.abc import Mapping
from pathlib import Path

from toolfold.config.config import load_config
from toolfold.relay.manifest import NEEDED

_STAND_IN = "x"


def variables_named(
    *,
    config_file: Path | None,
    cwd: Path,
    environ: Mapping[str, str],
    overrides: Mapping[str, object],
) -> list[str]:
    """Return the names, sorted, of variables that are not in `environ` and would be used.

    Raises:
        ConfigError: As `load_config`.
    """
    asked = _RecordingEnviron(environ)
    load_config(config_file=config_file, cwd=cwd, environ=asked, overrides=overrides)
    return sorted(asked.names)


class _RecordingEnviron(dict[str, str]):
    """Gives any variable a value, and remembers which ones it was asked for."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__(environ)
        self.names: set[str] = set()

    def get(self, name: str, default: str | None = None) -> str | None:  # type: ignore[override]
        """Return what is there; else remember the name."""
        if name in self or name in NEEDED or name.startswith("TOOLFOLD_"):
            return super().get(name, default)
        self.names.add(name)
        return _STAND_IN
