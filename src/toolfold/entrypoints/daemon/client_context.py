"""Where a client of the daemon is, and what is configured there."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolfold.config.config import Config, load_config, parse_overrides, variables_named
from toolfold.errors import ConfigError
from toolfold.storage.files import ReadFile


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientContext:
    """What a client said of itself when it came."""

    cwd: Path
    config_file: Path | None
    overrides: dict[str, object]
    environ: dict[str, str]

    @classmethod
    def read(cls, hello: dict[str, Any]) -> "ClientContext":
        """Read a greeting.

        Raises:
            ConfigError: It does not say what it must, or an option does not fit.
        """
        try:
            return cls(
                cwd=Path(hello["cwd"]),
                config_file=Path(hello["config"]) if hello.get("config") else None,
                overrides=parse_overrides(hello["set"]),
                environ=dict(hello["environ"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"A client did not name its directory: {error!r}.") from error

    def variables(self, read: ReadFile) -> list[str]:
        """Return the variables that its configuration names.

        Raises:
            ConfigError: As `load_config`.
        """
        return variables_named(
            config_file=self.config_file,
            cwd=self.cwd,
            environ=self.environ,
            overrides=self.overrides,
            read=read,
        )

    def config(self, variables: dict[str, str], read: ReadFile) -> Config:
        """Return its configuration.

        Raises:
            ConfigError: As `load_config`.
        """
        return load_config(
            config_file=self.config_file,
            cwd=self.cwd,
            environ={**variables, **self.environ},
            overrides=self.overrides,
            read=read,
        )
