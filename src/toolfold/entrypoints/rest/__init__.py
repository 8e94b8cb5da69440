"""The REST API: every tool in one registry, memory, runs."""
