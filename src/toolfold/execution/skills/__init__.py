"""Skills in a run."""
