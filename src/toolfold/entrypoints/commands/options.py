"""What the options that commands share mean."""

import sys
from argparse import Namespace
from pathlib import Path

from toolfold.config.config import Config, current_directory, load_config, parse_overrides
from toolfold.config.servers import ServerFault
from toolfold.entrypoints.terminal import remote_terminal
from toolfold.errors import ConfigError
from toolfold.journal.runs import Origin
from toolfold.storage.files import ReadFile, read_file


def config_of(
    arguments: Namespace, *, cwd: Path | None = None, read: ReadFile = read_file
) -> Config:
    """Load the configuration that `--config` and `--set` ask for, here or as of a directory."""
    config_file = current_directory() / arguments.config if arguments.config else None
    overrides = parse_overrides(arguments.set)
    return load_config(config_file=config_file, cwd=cwd, overrides=overrides, read=read)


def config_of_run(arguments: Namespace, config: Config, run_id: str, begun: Origin) -> Config:
    """Return the configuration in which a run goes on: that in which it began.

    Where this process has not begun it, that of its project and of its key.

    Raises:
        ConfigError: Its project is not there any more.
        NotFound: Its key was revoked.
    """
    terminal = remote_terminal()
    known = terminal.config_of_run(run_id) if terminal is not None else None
    if known is not None and not (arguments.config or arguments.set):
        return known
    project, client = begun.project, begun.client
    place = Path(project or config.start_directory)
    if place != config.start_directory:
        if not place.is_dir():
            raise ConfigError(f"The project of this run no longer exists: {place}.")
        config = config_of(arguments, cwd=place)
    if not client.startswith("key:"):
        return config
    from toolfold.entrypoints.http.keys import Keys  # few runs are of keys
    from toolfold.entrypoints.http.tenants import in_namespace

    key = Keys.of(config).get(client.removeprefix("key:"))
    return config if key.namespace == config.namespace else in_namespace(config, key.namespace)


def warn_of_settings(config: Config) -> None:
    """Say on standard error which settings cannot be used; what servers lack is told elsewhere."""
    for fault in config.faults:
        if not isinstance(fault, ServerFault):
            print(f"toolfold: {fault}", file=sys.stderr)


def written_options(arguments: Namespace) -> list[str]:
    """Return the shared options as they are written on a command line."""
    config = ["--config", arguments.config] if arguments.config else []
    return config + [word for text in arguments.set for word in ("--set", text)]
