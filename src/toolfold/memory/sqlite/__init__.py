"""Notes in a SQLite file."""
