"""Whether a call of a tool is allowed, asked about or denied."""
