"""What the options that commands share mean."""

from argparse import Namespace
from pathlib import Path

from toolfold.config.config import Config, load_config, parse_overrides


def config_of(arguments: Namespace, *, cwd: Path | None = None) -> Config:
    """Load the configuration that `--config` and `--set` ask for, here or as of a directory."""
    config_file = Path(arguments.config).absolute() if arguments.config else None
    overrides = parse_overrides(arguments.set)
    return load_config(config_file=config_file, cwd=cwd, overrides=overrides)


def written_options(arguments: Namespace) -> list[str]:
    """Return the shared options as they are written on a command line."""
    config = ["--config", arguments.config] if arguments.config else []
    return config + [word for text in arguments.set for word in ("--set", text)]
