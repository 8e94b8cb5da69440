"""Keep memory in PostgreSQL: words in arrays, meaning in pgvector."""
