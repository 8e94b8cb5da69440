"""What is remembered: notes, found again by words, meaning, tags and time."""
