"""The audit log: entries chained by signatures."""
