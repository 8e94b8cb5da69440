"""`python -m toolfold`, and the command `toolfold`."""

import gc
import os
import sys


def main() -> int:
    """Run the command line. What clients start goes its own short way."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["mcp"]:
        from toolfold.relay.mcp import read_client_context, relay

        context = read_client_context(arguments[1:], os.environ)
        if context is not None:
            return relay(context, os.environ)
    if arguments[:1] == ["hook"] and not {"-h", "--help"} & set(arguments):
        from toolfold.relay.hooks.hook import hook

        return hook(arguments[1:], os.environ)
    if arguments:
        from toolfold.relay.terminal import goes_by_daemon, run_by_daemon

        if goes_by_daemon(arguments, os.environ):
            status = run_by_daemon(arguments, os.environ)
            if status is not None:
                return status
    from toolfold.entrypoints.cli import run_command

    try:
        return run_command(arguments)
    finally:
        gc.freeze()  # the collection at exit would look through all there is, for 0.3 s


if __name__ == "__main__":
    sys.exit(main())
