"""See and steer what runs, in a browser: pages over the REST operations."""
