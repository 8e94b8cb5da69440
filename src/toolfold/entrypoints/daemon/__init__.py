"""One warm process for all clients of a user."""
