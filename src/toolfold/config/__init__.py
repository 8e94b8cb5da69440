"""What the user configured: servers, limits, directories."""
