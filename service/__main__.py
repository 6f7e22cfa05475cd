"""Command line: settings, model, server. `python -m service --help` lists every setting."""

from __future__ import annotations

import math
import os
import signal
import sys

import uvicorn

from service.app import create_app, load_bundle
from service.errors import StartupError
from service.log import configure_logging
from service.settings import load_settings

# Longer than the idle timeout of common load balancers (60 s), so that they close first and never
# send a request into a connection that we are closing.
KEEP_ALIVE_S = 75


def main() -> int:
    """Serve until a stop signal.

    Returns:
        Exit code: 0 after a clean stop, 1 when the start failed.
    """
    try:
        settings = load_settings(sys.argv[1:], os.environ)
        configure_logging(settings.log_level)
        app = create_app(settings, load_bundle(settings))
    except StartupError as error:
        print(f"adrel: {error}", file=sys.stderr)
        return 1
    _exit_zero_on_stop_signals()
    uvicorn.run(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,  # ours is in place
        access_log=False,  # requests are counted in the metrics
        server_header=False,
        lifespan="on",
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=math.ceil(settings.drain_timeout_s),
    )
    return 0


def _exit_zero_on_stop_signals() -> None:
    """Drain first, exit 0 after: uvicorn drains on these signals and then raises them again."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)


if __name__ == "__main__":
    sys.exit(main())
