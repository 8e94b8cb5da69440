"""FastMCP CodeMode over the servers of a configuration file. Runs in FastMCP's environment."""

import json
import sys
from pathlib import Path

from fastmcp import FastMCP
from fastmcp.experimental.transforms.code_mode import CodeMode
from fastmcp.server import create_proxy

servers = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["mcpServers"]
# Without a limit: by default it stops at 50 calls, one short of the job.
door = FastMCP("codemode", transforms=[CodeMode(max_tool_calls=None)])
for name, entry in servers.items():
    # Each on its own: one proxy over all of them starts every server anew for every call.
    door.mount(create_proxy({"mcpServers": {name: entry}}), namespace=name)
door.run(transport="stdio", show_banner=False, log_level="ERROR")
