"""`toolfold ui`: the dashboard of the daemon, in the browser, for as long as the command runs."""

from argparse import Namespace

from toolfold.app import App
from toolfold.entrypoints.commands.local import with_app
from toolfold.entrypoints.commands.options import config_of
from toolfold.entrypoints.commands.state_checks import examine_app
from toolfold.entrypoints.dashboard.sessions import BrowserSessions
from toolfold.entrypoints.http.app import http_app
from toolfold.entrypoints.http.stack import serve_asgi
from toolfold.entrypoints.terminal import open_browser


def ui(arguments: Namespace) -> int:
    """Serve the dashboard on a loopback port until interrupted; open it unless told not to."""
    browsers = BrowserSessions()

    def announce(url: str) -> None:
        address = f"{url.removesuffix('mcp')}ui/open?ticket={browsers.issue_ticket()}"
        print(f"Dashboard: {address}", flush=True)
        print("The address works once, for two minutes. Press Ctrl-C to close it.", flush=True)
        if not arguments.no_browser:
            open_browser(address)

    async def action(app: App) -> int:
        served = http_app(app, must_have_key=True, browsers=browsers, examine=examine_app)
        await serve_asgi(served, host="127.0.0.1", port=arguments.port, started=announce)
        return 0

    return with_app(config_of(arguments), action)
