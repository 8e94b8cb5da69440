"""Have a verb of memory done whose command comes from its signature."""

import json
from argparse import Namespace

from toolfold.entrypoints.commands.memory import ask_memory


def call_verb(arguments: Namespace) -> int:
    """Call the verb with what was given, and print what it answers."""
    path, may_repeat, names = arguments.verb
    given = {name: getattr(arguments, name) for name in names}
    value = ask_memory(arguments, path.partition(".")[2], given, may_repeat=may_repeat)
    is_text = isinstance(value, str) and not arguments.json
    print(value if is_text else json.dumps(value, ensure_ascii=False, indent=2))
    return 0
