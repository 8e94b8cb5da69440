"""The options of `toolfold memory …`: argument parsing, nothing else."""

import argparse
from typing import Any

from toolfold.entrypoints.derived_options import add_derived


def add_memory(commands: Any) -> None:
    """Add the command and all below it."""
    memory = commands.add_parser("memory", help="store, find and keep notes")
    verbs = memory.add_subparsers(metavar="VERB", required=True, prog="toolfold memory")
    _add_writing(verbs)
    _add_finding(verbs)
    _add_one_note(verbs)
    _add_documents(verbs)
    _add_consolidation(verbs)
    _add_events(verbs)
    _add(verbs, "health", help="say how the memory is")
    reembed = _add(verbs, "reembed", help="make all vectors anew, after the embedder has changed")
    reembed.set_defaults(config=None, set=[])
    add_derived(verbs)
    # Without help it is not listed: hooks start it.
    _add(verbs, "hook", command="answer_in_own_process", module="commands.hook")


def add_transfer(commands: Any) -> None:
    """Add `toolfold import` and `toolfold export`."""
    module = "commands.transfer"
    taking = _add(
        commands,
        "import",
        command="import_memory",
        module=module,
        help="take in notes and graphs: of toolfold, server-memory or mcp-memory-service",
    )
    taking.add_argument("file", help="the file; - for standard input")
    taking.add_argument("--dry-run", action="store_true", help="only say what would be taken")
    giving = _add(
        commands,
        "export",
        command="export_memory",
        module=module,
        help="write out all that is remembered, as JSON lines",
    )
    giving.add_argument("file", nargs="?", help="the file; standard output if left out")
    giving.add_argument(
        "--format",
        choices=("toolfold", "server-memory"),
        default="toolfold",
        help="everything (default), or the graph as server-memory keeps it",
    )


def _add(
    verbs: Any,
    name: str,
    *,
    command: str | None = None,
    module: str = "commands.memory",
    **options: Any,
) -> Any:
    parser: argparse.ArgumentParser = verbs.add_parser(name, **options)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--namespace", help="where the notes belong to; by default the project")
    parser.set_defaults(command=command or name, module=module)
    return parser


def _add_writing(verbs: Any) -> None:
    store = _add(verbs, "store", help="remember something")
    store.add_argument("content", nargs="?", help="the text; standard input if left out")
    store.add_argument("--source", default="", help="where it comes from")
    update = _add(verbs, "update", help="change a note; how it was is kept")
    update.add_argument("hash")
    update.add_argument("--content", help="what it says from now on")
    for parser in (store, update):
        parser.add_argument("--tags", help="tags, parted by commas")
        parser.add_argument("--type", help="what kind of note it is")
        parser.add_argument("--metadata", metavar="JSON", help="an object of your own")


def _add_finding(verbs: Any) -> None:
    search = _add(verbs, "search", help="find notes by words and meaning")
    recall = _add(verbs, "recall", help='the same, honouring time in words: "last week"')
    listing = _add(verbs, "list", command="list_notes", help="list notes, newest first")
    for parser, default in ((search, 5), (recall, 5), (listing, 20)):
        if parser is not listing:
            parser.add_argument("query", nargs="+")
        parser.add_argument("--limit", type=int, default=default, help=f"how many ({default})")
        parser.add_argument("--tags", help="only notes with any of these, parted by commas")
    for parser in (search, listing):
        parser.add_argument("--match", choices=("any", "all"), default="any", help="of the tags")
        parser.add_argument("--type", help="only notes of this type")
        parser.add_argument("--after", metavar="TIME", help="only from then on: 2026-03-01")
        parser.add_argument("--before", metavar="TIME", help="only earlier ones")
    search.add_argument("--min-score", type=float, default=0.0, help="leave out weaker matches")
    search.add_argument("--explain", action="store_true", help="say why each note was found")
    listing.add_argument("--offset", type=int, default=0, help="leave out so many first")


def _add_one_note(verbs: Any) -> None:
    for name, about in (
        ("get", "show a whole note"),
        ("history", "show every version of a note"),
        ("restore", "bring a deleted note back"),
    ):
        _add(verbs, name, help=about).add_argument("hash", help="its hash, or the beginning of it")
    delete = _add(verbs, "delete", help="delete notes, so that they can be restored")
    delete.add_argument("hashes", nargs="*", metavar="HASH")
    delete.add_argument("--tags", help="all notes with any of these, parted by commas")
    delete.add_argument("--match", choices=("any", "all"), default="any", help="of the tags")
    purge = _add(verbs, "purge", help="erase notes for good, with all their versions")
    purge.add_argument("hashes", nargs="+", metavar="HASH")


def _add_known(verbs: Any, name: str, command: str, **options: Any) -> Any:
    return _add(verbs, name, command=command, module="commands.knowledge", **options)


def _add_documents(verbs: Any) -> None:
    ingest = _add_known(verbs, "ingest", "ingest", help="remember what files say: PDF, DOCX, …")
    ingest.add_argument("path", help="a file or a folder")
    ingest.add_argument("--tags", help="tags, parted by commas")
    ingest.add_argument("--pattern", help="of a folder only files such as '*.md'")
    ingest.add_argument("--flat", action="store_true", help="leave out folders in the folder")
    documents = _add_known(verbs, "documents", "documents", help="list what was ingested")
    documents.add_argument("--limit", type=int, default=20, help="how many (20)")
    documents.add_argument("--offset", type=int, default=0, help="leave out so many first")
    forget = _add_known(
        verbs, "forget-document", "forget_document", help="forget a document, or all of a folder"
    )
    forget.add_argument("path")


def _add_consolidation(verbs: Any) -> None:
    consolidate = _add_known(verbs, "consolidate", "consolidate", help="make order in the notes")
    consolidate.add_argument(
        "--strategy", choices=("balanced", "speed", "quality", "minimal"), default="balanced"
    )
    consolidate.add_argument("--days-back", type=float, help="only notes of the last so many days")
    consolidate.add_argument("--dry-run", action="store_true", help="only say what would be done")
    undo = _add_known(verbs, "undo", "undo", help="reverse a consolidation, by default the last")
    undo.add_argument("id", nargs="?")
    past = _add_known(verbs, "consolidations", "consolidations", help="list those of the past")
    past.add_argument("--limit", type=int, default=20, help="how many (20)")


def _add_events(verbs: Any) -> None:
    record = _add_known(verbs, "record-event", "record_event", help="write down what happened")
    record.add_argument("type", help='what it was: "deploy"')
    record.add_argument("content", nargs="?", help="more about it")
    record.add_argument("--outcome", help='how it ended: "success"')
    record.add_argument("--duration-ms", type=float, help="how long it took")
    record.add_argument("--session", help="the conversation or run in which it happened")
    events = _add_known(verbs, "events", "recall_events", help="list what happened, newest first")
    events.add_argument("--type", help="only events of this type")
    events.add_argument("--session", help="only those of this conversation or run")
    events.add_argument("--since", metavar="TIME", help='from then on: "yesterday", 2026-03-01')
    events.add_argument("--until", metavar="TIME", help="until then")
    events.add_argument("--limit", type=int, default=20, help="how many (20)")
