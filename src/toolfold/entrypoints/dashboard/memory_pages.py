"""The pages of memory: notes, one note, the graph, consolidation, documents."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from starlette.responses import JSONResponse, Response

from toolfold.entrypoints.dashboard.asker import Asker, View, see_other
from toolfold.entrypoints.dashboard.render import HEADERS
from toolfold.errors import BadInput, NotFound, count

_NOTES_SHOWN: Final = 30
_DOCUMENTS_SHOWN: Final = 50
_TAGS_SHOWN: Final = 24
_PASSAGES_SHOWN: Final = 20
_GRAPH_NODES: Final = 10_000
_STRATEGIES: Final = ("balanced", "speed", "quality", "minimal")


async def show_notes(ask: Asker) -> Response:
    """Notes as agents find them, with the reasons for their rank; without a query the newest."""
    wanted = {name: ask.query.get(name, "") for name in ("query", "tags", "after", "before")}
    if wanted["query"]:
        asked = {"query": wanted["query"], "tags": wanted["tags"], "limit": _NOTES_SHOWN}
        found = await ask.get("/memory/recall", **asked, explain=True) | {"next_offset": None}
    else:
        asked = {name: wanted[name] for name in ("tags", "after", "before")}
        found = await ask.get("/memory/notes", **asked, limit=_NOTES_SHOWN, offset=ask.offset)
        seen = ask.offset + len(found["memories"])
        found["next_offset"] = seen if seen < found["total"] else None
    return ask.page(
        "notes",
        found=found,
        wanted=wanted,
        tags=(await ask.get("/memory/tags", limit=_TAGS_SHOWN))["tags"],
        health=await ask.get("/memory/health"),
        told=ask.told,
        deleted=ask.query.get("deleted", ""),
    )


async def add_note(ask: Asker) -> Response:
    """Remember what the form says."""
    stored = await ask.post(
        "/memory/notes", content=ask.form.get("content"), tags=ask.form.get("tags")
    )
    return see_other(_note_path(stored["hash"]), told="Stored.")


async def show_note(ask: Asker) -> Response:
    """One note with its versions and links, to be changed or deleted."""
    hash_ = ask.path["hash"]
    history = await ask.get("/memory/notes/{hash}/history", hash=hash_, limit=50)
    return ask.page(
        "note",
        note=await ask.get("/memory/notes/{hash}", hash=hash_),
        versions=history["versions"],
        told=ask.told,
    )


async def change_note(ask: Asker) -> Response:
    """Keep a note's new content and tags; how it was stays as a version."""
    changed = await ask.send(
        "PATCH",
        "/memory/notes/{hash}",
        hash=ask.path["hash"],
        content=ask.form.get("content", "").replace("\r\n", "\n"),
        tags=ask.form.get("tags", "").split(","),
    )
    return see_other(_note_path(changed["hash"]), told="Saved. The previous version is kept.")


async def delete_note(ask: Asker) -> Response:
    """Delete a note; the next page offers to bring it back."""
    hash_ = ask.path["hash"]
    answer = await ask.send("DELETE", "/memory/notes/{hash}", hash=hash_)
    if not answer["deleted"]:
        raise NotFound(f"There is no note {hash_}.")
    return see_other("/ui/memory", told=f"Deleted the note {hash_[:8]}.", deleted=hash_)


async def restore_note(ask: Asker) -> Response:
    """Bring a deleted note back."""
    hash_ = ask.path["hash"]
    await ask.post("/memory/notes/{hash}/restore", hash=hash_)
    return see_other(_note_path(hash_), told="Restored.")


async def merge_notes(ask: Asker) -> Response:
    """Have the newest of the chosen notes stand for all, with the tags of all."""
    hashes = list(dict.fromkeys(ask.chosen))
    if len(hashes) < 2:
        raise BadInput("Choose at least two notes to merge: tick them in the list.")
    notes = [await ask.get("/memory/notes/{hash}", hash=each) for each in hashes]
    kept, *others = sorted(notes, key=lambda note: -note["created"])
    tags = list(dict.fromkeys(tag for note in (kept, *others) for tag in note["tags"]))
    if tags != list(kept["tags"]):
        answer = await ask.send("PATCH", "/memory/notes/{hash}", hash=kept["hash"], tags=tags)
        kept = {**kept, "hash": answer["hash"]}
    for note in others:
        path = "/memory/notes/{hash}/supersede"
        await ask.post(path, hash=note["hash"], by=kept["hash"])
    told = f"Merged {count(len(notes), 'note')} into this one. The others are kept as superseded."
    return see_other(_note_path(kept["hash"]), told=told)


async def reinstate_note(ask: Asker) -> Response:
    """Have a note hold again that another one superseded."""
    hash_ = ask.path["hash"]
    await ask.post("/memory/notes/{hash}/reinstate", hash=hash_)
    return see_other(_note_path(hash_), told="This note is current again.")


async def show_graph(ask: Asker) -> Response:
    """The graph: drawn, and as a table of the entities that have words of a query."""
    query, name = ask.query.get("query", ""), ask.query.get("name", "")
    found = await ask.get("/graph/search", query=query, limit=_NOTES_SHOWN) if query else None
    around = await ask.get("/graph/neighbors", name=name, depth=1) if name else None
    return ask.page("graph", query=query, found=found, around=around)


async def graph_data(ask: Asker) -> Response:
    """The nodes and edges to draw, as JSON."""
    graph = await ask.get("/graph")
    names = [str(each["name"]) for each in graph["entities"][:_GRAPH_NODES]]
    places = {name: place for place, name in enumerate(names)}
    edges = [
        [places[each["from"]], places[each["to"]]]
        for each in graph["relations"]
        if each["from"] in places and each["to"] in places
    ]
    return JSONResponse({"names": names, "edges": edges}, headers=HEADERS)


async def show_consolidations(ask: Asker) -> Response:
    """What consolidation would do, before it does it, and what it did before."""
    strategy = ask.query.get("preview", "")
    preview = None
    if strategy in _STRATEGIES:
        preview = await ask.post("/consolidation", strategy=strategy, dry_run=True)
    return ask.page(
        "consolidation",
        strategies=_STRATEGIES,
        preview=preview,
        past=(await ask.get("/consolidation"))["consolidations"],
        told=ask.told,
    )


async def consolidate(ask: Asker) -> Response:
    """Do what the preview showed."""
    done = await ask.post("/consolidation", strategy=ask.form.get("strategy"))
    counts = done["counts"]
    return see_other(
        "/ui/memory/consolidation",
        told=f"Done: {count(counts['superseded'], 'duplicate')} superseded, "
        f"{counts['archived']} archived, {count(counts['associations'], 'link')} made. "
        "It can be undone below.",
    )


async def undo_consolidation(ask: Asker) -> Response:
    """Reverse one consolidation whole."""
    await ask.post("/consolidation/{id}/undo", id=ask.path["id"])
    return see_other("/ui/memory/consolidation", told="Undone.")


async def show_documents(ask: Asker) -> Response:
    """The documents that are remembered."""
    found = await ask.get("/documents", limit=_DOCUMENTS_SHOWN, offset=ask.offset)
    return ask.page("documents", found=found, told=ask.told)


async def forget_document(ask: Asker) -> Response:
    """Forget a document with all its passages."""
    gone = await ask.send("DELETE", "/documents", path=ask.form.get("path"))
    return see_other("/ui/memory/documents", told=f"Forgot {count(gone['forgotten'], 'passage')}.")


async def show_document(ask: Asker) -> Response:
    """One document with the passages it was cut into."""
    path = ask.query.get("path", "?")
    found = await ask.get(
        "/documents/passages", path=path, limit=_PASSAGES_SHOWN, offset=ask.offset
    )
    notes = [await ask.get("/memory/notes/{hash}", hash=each) for each in found["passages"]]
    return ask.page("document", path=path, found=found, notes=notes, first=ask.offset + 1)


async def show_transfer(ask: Asker) -> Response:
    """Where memory is exported and imported."""
    return ask.page("transfer", path="", preview=None, told=ask.told)


async def export_memory(ask: Asker) -> Response:
    """All that is remembered, as a file."""
    response: Response = await ask.get("/memory/export")
    return response


async def import_memory(ask: Asker) -> Response:
    """Say what an import would do, or do it once that was confirmed."""
    path, is_confirmed = ask.form.get("path", "").strip(), ask.form.get("confirmed") == "yes"
    if not path:
        raise BadInput("Name the file to import by its full path on this machine.")
    found = await ask.post("/memory/import", path=path, dry_run=not is_confirmed)
    if not is_confirmed:
        return ask.page("transfer", path=path, preview=found, told="")
    counts = [f"{each['added']:,} {each['what']} added" for each in found["changes"]]
    return see_other("/ui/memory/transfer", told=f"Imported: {', '.join(counts) or 'nothing'}.")


def _note_path(hash_: str) -> str:
    return f"/ui/memory/notes/{quote(hash_)}"


MEMORY_VIEWS: Final[Mapping[tuple[str, str], View]] = {
    ("GET", "/ui/memory"): show_notes,
    ("POST", "/ui/memory"): add_note,
    ("GET", "/ui/memory/notes/{hash}"): show_note,
    ("POST", "/ui/memory/notes/{hash}"): change_note,
    ("POST", "/ui/memory/notes/{hash}/delete"): delete_note,
    ("POST", "/ui/memory/notes/{hash}/restore"): restore_note,
    ("POST", "/ui/memory/notes/{hash}/reinstate"): reinstate_note,
    ("POST", "/ui/memory/merge"): merge_notes,
    ("GET", "/ui/memory/graph"): show_graph,
    ("GET", "/ui/memory/graph/data"): graph_data,
    ("GET", "/ui/memory/consolidation"): show_consolidations,
    ("POST", "/ui/memory/consolidation"): consolidate,
    ("POST", "/ui/memory/consolidation/{id}/undo"): undo_consolidation,
    ("GET", "/ui/memory/documents"): show_documents,
    ("GET", "/ui/memory/documents/one"): show_document,
    ("POST", "/ui/memory/documents/forget"): forget_document,
    ("GET", "/ui/memory/transfer"): show_transfer,
    ("POST", "/ui/memory/transfer"): import_memory,
    ("GET", "/ui/memory/export"): export_memory,
}
