"""What brings a file from one version to the next."""
