"""`toolfold` alone: what it is, what it found here, and the one next command."""

from argparse import Namespace

from toolfold.config.config import current_directory, environment, load_config
from toolfold.entrypoints.install.found import FoundClient, found_clients, next_command
from toolfold.entrypoints.screen import Cell, print_line
from toolfold.errors import count


def welcome(_arguments: Namespace) -> int:
    """Say in ten lines what there is to know at first."""
    config = load_config()
    found = found_clients(config.directories, environment(), current_directory())
    print_line(Cell("toolfold", "strong"), " folds every tool an agent has into one: execute_code.")
    print("Your agent writes Python; the code calls your MCP servers from a sandbox.")
    print()
    for each in found:
        print_line("  ", Cell(f"{each.client:<8}", "name"), f" {_state(each)}")
    if not found:
        print("  No client found here (claude, cursor, vscode, codex).")
    own = count(len(config.servers), "server")
    print_line("  ", Cell(f"{'toolfold':<8}", "name"), f" {own} configured")
    print()
    command, does = _next(found, has_servers=bool(config.servers))
    print_line("Next: ", Cell(command, "good"), f"   {does}")
    print("See also: toolfold demo, toolfold --help")
    return 0


def _state(found: FoundClient) -> str:
    if found.is_installed:
        return "uses toolfold"
    return f"{count(found.servers, 'server')} of its own"


def _next(found: list[FoundClient], *, has_servers: bool) -> tuple[str, str]:
    if command := next_command(found):
        return f"{command} --dry-run", "shows what would change, and changes nothing"
    if has_servers:
        return "toolfold doctor", "checks that everything works"
    return "toolfold init", "writes a starter configuration"
