"""The options of `toolfold memory …`: argument parsing, nothing else."""

import argparse
from typing import Any

from toolfold.entrypoints.derived_options import add_derived
from toolfold.entrypoints.parser import accept_yes, positive


class _Joined(argparse.Action):
    """Takes an option that is given more than once as one list with commas."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        _option: str | None = None,
    ) -> None:
        given = getattr(namespace, self.dest, None)
        setattr(namespace, self.dest, f"{given},{values}" if given else values)


def add_memory(commands: Any) -> None:
    """Add the command and all below it."""
    memory = commands.add_parser(
        "memory",
        help="store and find notes",
        description="Notes that last between conversations, found by words, meaning and time.",
        examples=(
            "toolfold memory store 'The API key rotates on Mondays' --tags ops",
            "toolfold memory search 'when does the key rotate'",
            "toolfold memory ingest docs/",
        ),
    )
    verbs = memory.add_subparsers(metavar="VERB", prog="toolfold memory")
    _add_writing(verbs)
    _add_finding(verbs)
    _add_one_note(verbs)
    _add_documents(verbs)
    _add_consolidation(verbs)
    _add_events(verbs)
    _add_transfer(verbs, "toolfold memory")
    sync = _add(
        verbs,
        "sync",
        "share notes with other machines by a folder or a git repository",
        "toolfold memory sync ~/Dropbox/notes --key-file ~/.config/notes.key",
        command="sync_memory",
        module="commands.transfer",
    )
    sync.add_argument("remote", metavar="REMOTE", help="a folder, or the address of a repository")
    sync.add_argument(
        "--key-file", default="", metavar="FILE", help="encrypt with this key (32 random bytes)"
    )
    _add(verbs, "health", "show the state of the memory", "toolfold memory health")
    reembed = _add(
        verbs,
        "reembed",
        "rebuild embeddings after the model has changed",
        "toolfold memory reembed",
    )
    reembed.set_defaults(config=None, set=[])
    add_derived(verbs)
    # Without help it is not listed: hooks start it.
    _add(verbs, "hook", "", command="answer_in_own_process", module="commands.hook")


def add_transfer(commands: Any, shared: Any) -> None:
    """Add `toolfold import`, `toolfold export` and `toolfold migrate`."""
    _add_transfer(commands, "toolfold")
    migrate = commands.add_parser(
        "migrate",
        help="copy memory from one database into another",
        description="Copy memory from one database into another.",
        examples=(
            "toolfold migrate --from sqlite --to postgresql://me@db/toolfold",
            "toolfold migrate --from postgresql --to sqlite",
        ),
        parents=[shared],
    )
    migrate.set_defaults(command="migrate", module="commands.migrate")
    migrate.add_argument("--json", action="store_true", help="print JSON")
    what = "sqlite, postgresql (that of config.toml), or postgresql://..."
    migrate.add_argument(
        "--from", dest="source", required=True, metavar="DATABASE", help=f"where memory is: {what}"
    )
    migrate.add_argument(
        "--to", dest="target", required=True, metavar="DATABASE", help="where it goes: the same"
    )


def _add_transfer(verbs: Any, prog: str) -> None:
    taking = _add(
        verbs,
        "import",
        "import notes of toolfold, other memory servers, ChatGPT, Claude or Claude Code",
        f"{prog} import memory.jsonl --dry-run",
        command="import_memory",
        module="commands.transfer",
    )
    taking.add_argument("file", metavar="FILE", help="the file; - for standard input")
    taking.add_argument("--dry-run", action="store_true", help="only show what would be imported")
    giving = _add(
        verbs,
        "export",
        "export all notes as lines of JSON",
        f"{prog} export memory.jsonl",
        command="export_memory",
        module="commands.transfer",
    )
    giving.add_argument("file", nargs="?", metavar="FILE", help="default: standard output")
    giving.add_argument(
        "--format",
        choices=("toolfold", "server-memory"),
        default="toolfold",
        help="everything (default), or the graph as server-memory stores it",
    )


def _add(
    verbs: Any,
    name: str,
    about: str,
    *examples: str,
    command: str | None = None,
    module: str = "commands.memory",
) -> Any:
    told = {"help": about, "description": f"{about[:1].upper()}{about[1:]}."} if about else {}
    parser: argparse.ArgumentParser = verbs.add_parser(name, examples=examples, **told)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--namespace", help="where the notes belong (default: the project)")
    parser.set_defaults(command=command or name, module=module)
    return parser


def _add_writing(verbs: Any) -> None:
    store = _add(verbs, "store", "store a note", "toolfold memory store 'Deploys are on Fridays'")
    store.add_argument("content", nargs="?", metavar="TEXT", help="default: standard input")
    store.add_argument("--source", default="", help="where it comes from")
    update = _add(
        verbs, "update", "change a note; its history is kept",
        "toolfold memory update 157a51ab --content 'Deploys are on Mondays'",
    )  # fmt: skip
    _add_hash(update)
    update.add_argument("--content", metavar="TEXT", help="the new text")
    for parser in (store, update):
        parser.add_argument("--tags", action=_Joined, help="comma-separated tags")
        parser.add_argument("--type", help="the type of note")
        parser.add_argument("--metadata", metavar="JSON", help="a JSON object of your own")
    tag = _add(
        verbs, "tag", "add tags to a note, or remove them",
        "toolfold memory tag 157a51ab ops release", "toolfold memory tag 157a51ab ops --remove",
    )  # fmt: skip
    _add_hash(tag)
    tag.add_argument("tags", nargs="+", metavar="TAG")
    tag.add_argument("--remove", action="store_true", help="remove these tags")


def _add_finding(verbs: Any) -> None:
    search = _add(
        verbs, "search", "find notes by words and meaning", "toolfold memory search 'release day'"
    )
    recall = _add(
        verbs, "recall", 'find notes, with time in words: "last week"',
        "toolfold memory recall 'what did we decide last week'",
    )  # fmt: skip
    listing = _add(
        verbs, "list", "list notes, newest first", "toolfold memory list --tags ops",
        command="list_notes",
    )  # fmt: skip
    for parser, default in ((search, 5), (recall, 5), (listing, 20)):
        if parser is not listing:
            parser.add_argument("query", nargs="+", metavar="QUERY")
        parser.add_argument(
            "--limit", type=positive, default=default, help=f"how many (default {default})"
        )
        parser.add_argument(
            "--tags", action=_Joined, help="only notes with any of these comma-separated tags"
        )
    for parser in (search, listing):
        parser.add_argument(
            "--match", choices=("any", "all"), default="any", help="any or all of the tags"
        )
        parser.add_argument("--type", help="only notes of this type")
        parser.add_argument("--after", metavar="TIME", help="only later ones: 2026-03-01")
        parser.add_argument("--before", metavar="TIME", help="only earlier ones")
    search.add_argument("--min-score", type=float, default=0.0, help="leave out weaker matches")
    search.add_argument("--explain", action="store_true", help="show why each note was found")
    listing.add_argument("--offset", type=int, default=0, help="skip so many first")


def _add_hash(parser: Any) -> None:
    parser.add_argument("hash", metavar="HASH", help="its hash, or the beginning of it")


def _add_one_note(verbs: Any) -> None:
    for name, about in (
        ("get", "show a note"),
        ("history", "show every version of a note"),
        ("restore", "restore a deleted note"),
    ):
        _add_hash(_add(verbs, name, about, f"toolfold memory {name} 157a51ab"))
    delete = _add(
        verbs, "delete", "delete notes; `restore` brings them back",
        "toolfold memory delete 157a51ab", "toolfold memory delete --tags draft",
    )  # fmt: skip
    delete.add_argument("hashes", nargs="*", metavar="HASH")
    delete.add_argument(
        "--tags", action=_Joined, help="all notes with any of these comma-separated tags"
    )
    delete.add_argument(
        "--match", choices=("any", "all"), default="any", help="any or all of the tags"
    )
    accept_yes(delete)
    purge = _add(
        verbs,
        "purge",
        "erase notes with all their versions",
        "toolfold memory purge 157a51ab --yes",
    )
    purge.add_argument("hashes", nargs="+", metavar="HASH")
    purge.add_argument("--yes", "-y", action="store_true", help="do not ask")


def _add_known(verbs: Any, name: str, command: str, about: str, *examples: str) -> Any:
    return _add(verbs, name, about, *examples, command=command, module="commands.knowledge")


def _add_documents(verbs: Any) -> None:
    ingest = _add_known(
        verbs, "ingest", "ingest", "store what files say: PDF, DOCX, Markdown, …",
        "toolfold memory ingest docs/ --pattern '*.md'",
    )  # fmt: skip
    ingest.add_argument("path", metavar="PATH", help="a file or a folder")
    ingest.add_argument("--tags", action=_Joined, help="comma-separated tags")
    ingest.add_argument("--pattern", help="only files of a folder such as '*.md'")
    ingest.add_argument("--flat", action="store_true", help="leave out folders in the folder")
    documents = _add_known(
        verbs, "documents", "documents", "list ingested documents", "toolfold memory documents"
    )
    documents.add_argument("--limit", type=positive, default=20, help="how many (default 20)")
    documents.add_argument("--offset", type=int, default=0, help="skip so many first")
    forget = _add_known(
        verbs, "forget-document", "forget_document", "forget a document, or all of a folder",
        "toolfold memory forget-document docs/old.md",
    )  # fmt: skip
    forget.add_argument("path", metavar="PATH")
    accept_yes(forget)


def _add_consolidation(verbs: Any) -> None:
    consolidate = _add_known(
        verbs, "consolidate", "consolidate", "tidy up notes: merge, tag and archive",
        "toolfold memory consolidate --dry-run",
    )  # fmt: skip
    consolidate.add_argument(
        "--strategy",
        choices=("balanced", "speed", "quality", "minimal"),
        default="balanced",
        help="how much is done (default balanced)",
    )
    consolidate.add_argument("--days-back", type=float, help="only notes of so many days")
    consolidate.add_argument("--dry-run", action="store_true", help="only show what would be done")
    undo = _add_known(
        verbs, "undo", "undo", "reverse a consolidation (default: the last)", "toolfold memory undo"
    )
    undo.add_argument("id", nargs="?", metavar="ID")
    past = _add_known(
        verbs, "consolidations", "consolidations", "list past consolidations",
        "toolfold memory consolidations",
    )  # fmt: skip
    past.add_argument("--limit", type=positive, default=20, help="how many (default 20)")


def _add_events(verbs: Any) -> None:
    record = _add_known(
        verbs, "record-event", "record_event", "record that something happened",
        "toolfold memory record-event deploy 'v1.2 to production' --outcome success",
    )  # fmt: skip
    record.add_argument("type", metavar="TYPE", help='such as "deploy"')
    record.add_argument("content", nargs="?", metavar="TEXT", help="more about it")
    record.add_argument("--outcome", help='such as "success"')
    record.add_argument("--duration-ms", type=float, help="how long it took")
    record.add_argument("--session", help="the conversation or run in which it happened")
    events = _add_known(
        verbs, "events", "recall_events", "list events, newest first",
        "toolfold memory events --since yesterday",
    )  # fmt: skip
    events.add_argument("--type", help="only events of this type")
    events.add_argument("--session", help="only those of this conversation or run")
    events.add_argument("--since", metavar="TIME", help='from then on: "yesterday", 2026-03-01')
    events.add_argument("--until", metavar="TIME", help="until then")
    events.add_argument("--limit", type=positive, default=20, help="how many (default 20)")
