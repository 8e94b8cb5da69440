"""What is said to a client when a conversation begins, turns or ends; see `toolfold hook`."""
