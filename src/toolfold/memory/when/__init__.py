"""Time in words: "last week" into a range. Pure."""
