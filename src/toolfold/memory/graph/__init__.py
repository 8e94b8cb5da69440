"""The knowledge graph: entities, what was observed of them, and how they are related."""
