"""The same notes on several machines, by a folder or a git repository that they share."""
