"""`python -m toolfold`, and the command `toolfold`."""

import sys


def main() -> int:
    """Run the command line."""
    from toolfold.entrypoints.cli import run_command

    return run_command(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
