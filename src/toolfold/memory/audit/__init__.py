"""Find what is wrong with notes, and propose what to do."""
