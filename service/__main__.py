"""Command line: settings, model, server. `python -m service --help` lists every setting."""

from __future__ import annotations

import logging
import math
import os
import signal
import sys

import uvicorn

from service.api.front import Front
from service.app import create_app, load_bundle
from service.errors import StartupError
from service.log import configure_logging
from service.server import Server, bind
from service.settings import Settings, load_settings

# Longer than the idle timeout of common load balancers (60 s), so that they close first and never
# send a request into a connection that we are closing.
KEEP_ALIVE_S = 75

# After the drain has ended, time for the last answers to leave.
LAST_ANSWERS_S = 1


def main() -> int:
    """Serve until a stop signal.

    Returns:
        Exit code: 0 after a stop, 1 when the start failed. (2 for options that do not exist.)
    """
    # uvicorn drains on these signals and then raises them again; this is that second time, and
    # the first one where the service is still loading.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        settings = load_settings(sys.argv[1:], os.environ)
        configure_logging(settings.log_level)
        _serve(settings)
    except StartupError as error:
        print(f"adrel: {error}", file=sys.stderr)
        return 1
    return 0


def _serve(settings: Settings) -> None:
    listener = bind(settings.host, settings.port)
    app = create_app(settings, load_bundle(settings))
    config = uvicorn.Config(
        Front(app),
        log_config=None,  # ours is in place
        access_log=False,  # requests are counted in the metrics
        server_header=False,
        proxy_headers=False,  # we ask nobody for an address
        lifespan="on",
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=math.ceil(settings.drain_timeout_s) + LAST_ANSWERS_S,
    )
    state = app.state.service
    try:
        # Looked up when the signal comes: the application sets it when it has started.
        server = Server(config, lambda: state.drain())  # noqa: PLW0108
        server.run(sockets=[listener])
    finally:
        if state.running_batches() > 0:
            # A run that hangs in the runtime would hold the interpreter's exit for ever.
            logging.getLogger(__name__).error("a batch never ended; leaving without it")
            logging.shutdown()
            os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
