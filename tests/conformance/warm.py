"""Run `client.py` without loading everything anew each time: `python warm.py SOCKET`.

Each run is a process of its own, forked from this one. `ask.py` is what the suite starts.
"""

import json
import os
import socketserver
import sys
import traceback

import anyio
import client


class OneRun(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        request = json.loads(self.rfile.readline())
        os.environ.update(request["environ"])
        try:
            anyio.run(client.main, request["url"])
            status = 0
        except BaseException:  # noqa: BLE001  # the outer edge of a process
            traceback.print_exc()
            status = 1
        self.wfile.write(f"{status}\n".encode())


class Forking(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    request_queue_size = 128
    max_children = 128


if __name__ == "__main__":
    with Forking(sys.argv[1], OneRun) as server:
        print("listening", flush=True)
        server.serve_forever(poll_interval=0.05)
