"""Session hooks of coding agents."""
