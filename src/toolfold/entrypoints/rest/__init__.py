"""The REST door: every tool in one registry, memory, runs."""
