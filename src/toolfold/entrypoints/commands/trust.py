"""`toolfold trust`: let the servers of a project's file start, once a person has read it."""

from argparse import Namespace
from pathlib import Path

from toolfold.config.config import load_config
from toolfold.config.paths import find_project, project_server_file
from toolfold.config.serverfile import outline_servers
from toolfold.config.trust import Trust
from toolfold.entrypoints.mcp.first_manifest import write_first_manifest
from toolfold.entrypoints.screen import tell
from toolfold.errors import ConfigError


def trust_project(arguments: Namespace) -> int:
    """Trust the file with its present content, or take that back; say what it starts."""
    path = Path(arguments.file) if arguments.file else _project_file()
    trust = Trust(load_config().directories.state)
    if arguments.revoke:
        was_trusted = trust.revoke(path)
        sentence = f"{path} is {'no longer' if was_trusted else 'not'} trusted."
        tell(arguments, sentence, file=str(path), trusted=False, servers=[])
        return 0
    lines = list(outline_servers(trust.trust(path)))
    write_first_manifest()
    sentence = f"{path} is trusted in its present form. Its servers:"
    tell(arguments, sentence, file=str(path), trusted=True, servers=lines)
    if arguments.json:
        return 0
    for line in lines:
        print(f"  {line}")
    print("An edit of the file takes the trust away. `toolfold trust --revoke` does so now.")
    return 0


def _project_file() -> Path:
    project = find_project(Path.cwd())
    path = project_server_file(project) if project else None
    if path is None:
        raise ConfigError(
            "This project has no .toolfold/mcp.json or .mcp.json to trust. "
            "Name the file, or go to the project's directory."
        )
    return path
