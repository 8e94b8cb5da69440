"""APIs that a specification describes: every operation is a tool."""
