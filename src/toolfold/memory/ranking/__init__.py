"""From what matches to an order. Pure."""
