"""MCP over HTTP."""
