"""`toolfold memory` beyond notes: documents, consolidation, events."""

from argparse import Namespace

from toolfold.api import forms
from toolfold.entrypoints.commands.memory import ask_memory, print_value
from toolfold.entrypoints.commands.progress import ProgressBar
from toolfold.entrypoints.terminal import absolute
from toolfold.errors import count
from toolfold.memory.consolidation.models import Consolidated, PastConsolidation, Undone
from toolfold.memory.documents.models import CompactDocuments, Ingested
from toolfold.memory.models import CompactEvents


def ingest(arguments: Namespace) -> int:
    """Remember what a file says, or all files of a folder; 1 if one could not be read."""
    given = {
        "path": absolute(arguments.path),
        "tags": arguments.tags,
        "pattern": arguments.pattern,
        "recursive": not arguments.flat,
    }
    with ProgressBar("files") as bar:
        value = ask_memory(arguments, "ingest", given, may_repeat=True, on_progress=bar.show)
    print_value(arguments, value, repr(forms.read(Ingested, value)))
    return int(bool(value["failures"]))


def documents(arguments: Namespace) -> int:
    """List the documents that are remembered."""
    given = {"limit": arguments.limit, "offset": arguments.offset}
    value = ask_memory(arguments, "documents", given, may_repeat=True)
    return print_value(arguments, value, repr(forms.read(CompactDocuments, value)))


def forget_document(arguments: Namespace) -> int:
    """Forget a document, or all of a folder."""
    value = ask_memory(arguments, "forget_document", {"path": absolute(arguments.path)})
    return print_value(arguments, value, f"{count(value, 'note')} deleted; the files stay.")


def consolidate(arguments: Namespace) -> int:
    """Tidy up notes."""
    given = {
        "strategy": arguments.strategy,
        "days_back": arguments.days_back,
        "dry_run": arguments.dry_run,
    }
    with ProgressBar("notes") as bar:
        value = ask_memory(arguments, "consolidate", given, on_progress=bar.show)
    return print_value(arguments, value, repr(forms.read(Consolidated, value)))


def undo(arguments: Namespace) -> int:
    """Reverse a consolidation."""
    value = ask_memory(arguments, "undo", {"id": arguments.id})
    return print_value(arguments, value, repr(forms.read(Undone, value)))


def consolidations(arguments: Namespace) -> int:
    """List the consolidations of the past."""
    value = ask_memory(arguments, "consolidations", {"limit": arguments.limit}, may_repeat=True)
    lines = [repr(forms.read(PastConsolidation, each)) for each in value]
    return print_value(arguments, value, "\n".join(lines) or "No consolidations yet.")


def record_event(arguments: Namespace) -> int:
    """Write down that something happened."""
    given = {
        "event_type": arguments.type,
        "content": arguments.content or "",
        "outcome": arguments.outcome,
        "duration_ms": arguments.duration_ms,
        "session_id": arguments.session,
    }
    value = ask_memory(arguments, "record_event", given)
    return print_value(arguments, value, str(value))


def recall_events(arguments: Namespace) -> int:
    """List what happened, newest first."""
    given = {
        "event_type": arguments.type,
        "session_id": arguments.session,
        "since": arguments.since,
        "until": arguments.until,
        "limit": arguments.limit,
    }
    value = ask_memory(arguments, "recall_events", given, may_repeat=True)
    return print_value(arguments, value, repr(forms.read(CompactEvents, value)))
