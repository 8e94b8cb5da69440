"""What happened: written down once, and never changed."""
