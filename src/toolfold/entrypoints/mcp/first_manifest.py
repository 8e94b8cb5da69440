"""Write the manifest of this directory before a daemon has ever run in it."""

from pathlib import Path
from typing import Any

from toolfold import __version__
from toolfold.catalog.known_values import program_kind
from toolfold.catalog.listing import write_whole
from toolfold.catalog.names import module_names
from toolfold.config.config import current_directory, deciding_files, environment, load_config
from toolfold.errors import ToolfoldError
from toolfold.relay.manifest import as_manifest, base_environ, file_states, manifest_path
from toolfold.relay.surface import built_in_answers


def write_first_manifest() -> None:
    """Let the next relay here answer at once and exactly.

    Where that cannot be told without a daemon, or not be written, the relay asks the daemon.
    """
    try:
        config = load_config()
        if config.settings.search_tools or config.settings.pinned_tools:
            return
        here = current_directory()
        environ = base_environ(environment())
        context: dict[str, Any] = {"cwd": str(here), "config": None, "set": [], "environ": environ}
        modules = module_names(server.name for server in config.servers)
        kinds = {modules[server.name]: program_kind(server) for server in config.servers}
        states = file_states(map(str, deciding_files(config, here, None)))
        answers = built_in_answers(__version__, sorted(modules.values()), kinds)
        text = as_manifest(answers, states, __version__)
        path = Path(manifest_path(str(config.directories.cache), context))
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_whole(path, text)
    except (ToolfoldError, OSError):
        return  # nothing is lost but a moment
