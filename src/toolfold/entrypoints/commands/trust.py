"""`toolfold trust`: let the servers of a project's file start, once a person has read it."""

from pathlib import Path

from toolfold.config.config import load_config
from toolfold.config.paths import find_project, project_server_file
from toolfold.config.serverfile import outline_servers
from toolfold.config.trust import Trust
from toolfold.entrypoints.mcp.first_manifest import write_first_manifest
from toolfold.errors import ConfigError


def trust_project(file: str | None, *, revoke: bool) -> int:
    """Trust the file with its present content, or take that back; say what it starts."""
    path = Path(file) if file else _project_file()
    trust = Trust(load_config().directories.state)
    if revoke:
        was_trusted = trust.revoke(path)
        print(f"{path} is {'no longer' if was_trusted else 'not'} trusted.")
        return 0
    content = trust.trust(path)
    print(f"{path} is trusted as it is now. Its servers:")
    for line in outline_servers(content):
        print(f"  {line}")
    write_first_manifest()
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
