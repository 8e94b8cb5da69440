"""Memory into files and out of them: our own format, and those of other programs."""
