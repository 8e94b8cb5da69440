"""A client of the REST door."""
