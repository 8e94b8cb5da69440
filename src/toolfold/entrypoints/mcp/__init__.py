"""toolfold as an MCP server."""
