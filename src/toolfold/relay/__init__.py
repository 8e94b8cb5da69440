"""What starts in milliseconds: the standard library only, and of it only what is light."""
