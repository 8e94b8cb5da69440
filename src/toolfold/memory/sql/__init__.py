"""Keep memory in tables: what the stores on SQLite and on PostgreSQL have in common."""
