"""What many notes say together: patterns, clusters, duplicates, and what fades."""
