"""Have `warm.py` run the client: `python ask.py SOCKET URL`. Standard library only."""

import json
import os
import socket
import sys

environ = {name: text for name, text in os.environ.items() if name.startswith("MCP_CONFORMANCE_")}
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1])
    request = json.dumps({"url": sys.argv[2], "environ": environ})
    connection.sendall(f"{request}\n".encode())
    sys.exit(int(connection.recv(8) or b"1"))
