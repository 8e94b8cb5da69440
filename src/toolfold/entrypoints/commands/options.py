"""What the options that commands share mean."""

from argparse import Namespace
from pathlib import Path

from toolfold.config.config import Config, load_config, parse_overrides


def config_of(arguments: Namespace) -> Config:
    """Load the configuration that `--config` and `--set` ask for."""
    config_file = Path(arguments.config) if arguments.config else None
    return load_config(config_file=config_file, overrides=parse_overrides(arguments.set))


def written_options(arguments: Namespace) -> list[str]:
    """Return the shared options as they are written on a command line."""
    config = ["--config", arguments.config] if arguments.config else []
    return config + [word for text in arguments.set for word in ("--set", text)]
