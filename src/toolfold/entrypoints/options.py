"""What the options that commands share mean."""

import json
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

from toolfold.config.settings import Config, load_config
from toolfold.errors import ConfigError


def config_of(arguments: Namespace) -> Config:
    """Load the configuration that `--config` and `--set` ask for."""
    config_file = Path(arguments.config) if arguments.config else None
    return load_config(config_file=config_file, overrides=read_overrides(arguments.set))


def written_options(arguments: Namespace) -> list[str]:
    """Return the shared options as they are written on a command line."""
    config = ["--config", arguments.config] if arguments.config else []
    return config + [word for text in arguments.set for word in ("--set", text)]


def read_overrides(texts: Iterable[str]) -> dict[str, object]:
    """Read the values of `--set`."""
    return dict(_override(text) for text in texts)


def _override(text: str) -> tuple[str, object]:
    key, separator, value = text.partition("=")
    if not separator:
        raise ConfigError(f"--set takes KEY=VALUE, such as limits.calls=50; got {text!r}.")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value
