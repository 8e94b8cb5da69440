"""Keep the whole knowledge graph as notes."""

import json

import graph
import memory

AT_ONCE = 100


def backup_all_entities(tag: str = "graph-backup") -> dict:
    """Store every entity of the knowledge graph as a note, with the relations that begin at it.

    Returns how many entities and relations there were, and the hashes of the notes.
    """
    found = graph.read_graph()
    notes = [_note(entity, found["relations"], tag) for entity in found["entities"]]
    hashes = []
    for start in range(0, len(notes), AT_ONCE):
        hashes.extend(memory.store_batch(notes[start : start + AT_ONCE]))
    return {
        "entities": len(found["entities"]),
        "relations": len(found["relations"]),
        "notes": hashes,
    }


def _note(entity, relations, tag):
    begun = [each for each in relations if each["from"] == entity["name"]]
    return {"content": json.dumps({"entity": entity, "relations": begun}), "tags": [tag]}
