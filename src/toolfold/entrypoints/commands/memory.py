"""`toolfold memory …`: what memory does, for people and for scripts that are not Python."""

import json
import sys
from argparse import Namespace
from contextlib import nullcontext
from typing import Any

from toolfold.api import forms
from toolfold.api.door import OnProgress, ask
from toolfold.api.values import Terminal, as_json
from toolfold.config.config import load_config
from toolfold.entrypoints.commands.progress import ProgressBar
from toolfold.entrypoints.parser import confirm
from toolfold.entrypoints.screen import Cell, Column, is_terminal, moment, print_json, print_table
from toolfold.entrypoints.terminal import remote_terminal
from toolfold.errors import BadInput, count, shown
from toolfold.memory.models import as_text

_COLUMNS = (Column("NOTE"), Column("STORED"), Column("TAGS"), Column("TEXT", is_wide=True))
_NONE = "No note has that hash. `toolfold memory list` shows them."


def store(arguments: Namespace) -> int:
    """Remember a text, from the command line or standard input."""
    content = _standard_input() if arguments.content in (None, "-") else arguments.content
    given = {
        "content": content,
        "tags": arguments.tags,
        "memory_type": arguments.type,
        "metadata": _metadata(arguments.metadata),
        "source": arguments.source,
    }
    value = ask_memory(arguments, "store", given, may_repeat=True)
    return print_value(arguments, value, str(value))


def search(arguments: Namespace) -> int:
    """Find notes by words and meaning."""
    given = _filters(arguments) | {
        "query": " ".join(arguments.query),
        "min_score": arguments.min_score,
        "explain": arguments.explain,
    }
    return _print_found(arguments, ask_memory(arguments, "search", given, may_repeat=True))


def recall(arguments: Namespace) -> int:
    """Find notes, honouring time in words."""
    given = {"query": " ".join(arguments.query), "limit": arguments.limit, "tags": arguments.tags}
    return _print_found(arguments, ask_memory(arguments, "recall", given, may_repeat=True))


def list_notes(arguments: Namespace) -> int:
    """List notes, newest first."""
    given = _filters(arguments) | {"offset": arguments.offset}
    return _print_found(arguments, ask_memory(arguments, "list", given, may_repeat=True))


def get(arguments: Namespace) -> int:
    """Show a whole note."""
    value = ask_memory(arguments, "get", {"hash": arguments.hash}, may_repeat=True)
    return print_value(arguments, value, as_text(forms.note(value)))


def history(arguments: Namespace) -> int:
    """Show every version of a note."""
    value = ask_memory(arguments, "history", {"hash": arguments.hash}, may_repeat=True)
    versions = [as_text(note) for note in forms.notes(value)]
    return print_value(arguments, value, "\n\n".join(versions))


def update(arguments: Namespace) -> int:
    """Change a note."""
    given = {
        "hash": arguments.hash,
        "content": arguments.content,
        "tags": arguments.tags,
        "memory_type": arguments.type,
        "metadata": _metadata(arguments.metadata),
    }
    value = ask_memory(arguments, "update", given)
    return print_value(arguments, value, str(value))


def tag(arguments: Namespace) -> int:
    """Add tags to a note, or remove them."""
    note = ask_memory(arguments, "get", {"hash": arguments.hash}, may_repeat=True)
    wanted = [each for text in arguments.tags for each in text.split(",") if each]
    kept = [each for each in note["tags"] if each not in wanted]
    tags = kept if arguments.remove else [*kept, *wanted]
    value = ask_memory(arguments, "update", {"hash": arguments.hash, "tags": tags})
    return print_value(arguments, value, f"Tags: {', '.join(tags) or 'none'}.")


def delete(arguments: Namespace) -> int:
    """Delete notes, by hash or by tag."""
    if bool(arguments.hashes) == bool(arguments.tags):
        raise BadInput("Name the notes to delete by their hashes, or by --tags; not both.")
    if arguments.tags:
        value = ask_memory(
            arguments, "delete_by_tag", {"tags": arguments.tags, "match": arguments.match}
        )
    else:
        value = ask_memory(arguments, "delete_batch", {"hashes": arguments.hashes})
    named = arguments.hashes[0] if len(arguments.hashes or ()) == 1 else "HASH"
    what = (
        f"Deleted {named}" if value == 1 and named != "HASH" else f"Deleted {count(value, 'note')}"
    )
    deleted = f"{what}. Undo: `toolfold memory restore {named}`"
    words = deleted if value else _NONE
    return print_value(arguments, value, words) or int(not value)


def restore(arguments: Namespace) -> int:
    """Bring a deleted note back."""
    value = ask_memory(arguments, "restore", {"hash": arguments.hash})
    restored = f"Note {arguments.hash} restored."
    words = restored if value else f"No deleted note has the hash {arguments.hash}."
    return print_value(arguments, value, words) or int(not value)


def purge(arguments: Namespace) -> int:
    """Erase notes for good."""
    notes = count(len(arguments.hashes), "note")
    question = f"Erase {notes} with all versions? They cannot be restored."
    if not confirm(question, yes=arguments.yes):
        print("Nothing was erased.")
        return 1
    value = ask_memory(arguments, "purge", {"hashes": arguments.hashes})
    words = f"{count(value, 'note')} erased." if value else _NONE
    return print_value(arguments, value, words) or int(not value)


def health(arguments: Namespace) -> int:
    """Say how the memory is."""
    value = ask_memory(arguments, "health", {}, may_repeat=True)
    return print_value(arguments, value, repr(forms.health(value))) or int(value["status"] != "ok")


def reembed(arguments: Namespace) -> int:
    """Rebuild the embeddings of all notes with the model of this toolfold."""
    from toolfold.app import reembed_memory
    from toolfold.entrypoints.commands.options import config_of

    with ProgressBar("notes") as bar:
        done = reembed_memory(config_of(arguments), bar.show)
    return print_value(arguments, done, f"{count(done, 'note')} embedded again.")


def ask_memory(
    arguments: Namespace,
    verb: str,
    given: dict[str, Any],
    *,
    may_repeat: bool = False,
    on_progress: OnProgress | None = None,
) -> Any:
    """Have a verb of memory done in the namespace that the options name."""
    from toolfold.entrypoints.commands.ask import terminal_elicitor

    terminal = remote_terminal()
    elicitor = terminal_elicitor(nullcontext)
    if terminal is not None:
        return terminal.ask_memory(
            load_config(),
            arguments.namespace or "",
            f"memory.{verb}",
            as_json(verb, given),
            on_progress=on_progress,
            elicitor=elicitor,
        )
    return ask(
        f"memory.{verb}",
        given,
        may_repeat=may_repeat,
        namespace=arguments.namespace,
        on_progress=on_progress,
        by=Terminal(elicitor),
    )


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode()  # whatever the locale says
    except UnicodeDecodeError as error:
        raise BadInput(f"Standard input is not text in UTF-8: {error}.") from error


def _filters(arguments: Namespace) -> dict[str, Any]:
    return {
        "limit": arguments.limit,
        "tags": arguments.tags,
        "tag_match": arguments.match,
        "memory_type": arguments.type,
        "after": arguments.after,
        "before": arguments.before,
    }


def _metadata(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadInput(f"--metadata takes a JSON object, and this is not: {error}.") from error


def _print_found(arguments: Namespace, value: Any) -> int:
    if is_terminal() and not arguments.json and value.get("memories"):
        print_table(_COLUMNS, map(_row, value["memories"]))
        return 0
    return print_value(arguments, value, repr(forms.found(value)))


def _row(note: dict[str, Any]) -> tuple[str | Cell, ...]:
    return (
        Cell(note["hash"], "name"),
        Cell(moment(note["created"]), "dim"),
        shown(", ".join(note["tags"])),
        shown(note["preview"]),
    )


def print_value(arguments: Namespace, value: Any, text: str) -> int:
    """Print an answer as text, or as JSON where that is asked for."""
    if arguments.json:
        print_json(value)
    else:
        print(text)
    return 0
