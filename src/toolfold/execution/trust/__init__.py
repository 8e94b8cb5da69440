"""What a run may do, and what it may see."""
