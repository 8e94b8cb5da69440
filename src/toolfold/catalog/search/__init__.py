"""Rank tools for a query."""
