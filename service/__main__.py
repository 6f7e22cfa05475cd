"""Command line: settings, model, server. `python -m service --help` lists every setting."""

from __future__ import annotations

import logging
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Literal

try:
    import uvicorn
    from starlette.types import ASGIApp

    from service.api import admin_routes, models_route
    from service.api.admin import create_admin_app
    from service.api.body import mark_late
    from service.api.doors import admin_door, public_door
    from service.api.keys import load_keys
    from service.api.state import ServiceState
    from service.app import create_app, load_model
    from service.connections import ConnectionLimits, guarded
    from service.log import configure_logging
    from service.log_writer import BackgroundHandler
    from service.server import AdminServer, Server, bind
    from service.settings import Settings, load_settings
    from service.startup_errors import StartupError
except ModuleNotFoundError as error:  # the command is there with any extra, also the client's
    sys.exit(f"adrel: no module {error.name}; serving needs the extra: pip install '.[serve]'")

# Longer than the idle timeout of common load balancers (60 s), so that they close first and never
# send a request into a connection that we are closing.
KEEP_ALIVE_S = 75

# After the drain has ended, time for the last answers to leave.
LAST_ANSWERS_S = 1

# For a batch that was running when a drain ran out of time. One takes milliseconds.
LAST_BATCHES_S = 2.0
LOOK_EVERY_S = 0.01

# To end what is left: traces that are still to be sent, files, the interpreter. Ample, since a busy
# machine is no stop that hangs.
LAST_EXIT_S = 5

# Scrapers and probes are few.
ADMIN_CONNECTIONS = 64


def main() -> int:
    """Serve until a stop signal.

    Returns:
        Exit code: 0 after a stop, 1 when the start failed. (2 for options that do not exist.)
    """
    # uvicorn drains on these signals and then raises them again; this is that second time, and
    # the first one where the service is still loading.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    if hasattr(signal, "SIGHUP"):  # it means a reload, and what is loading now is new enough
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        settings = load_settings(sys.argv[1:], os.environ)
        _serve(settings, configure_logging(settings.log_level))
    except StartupError as error:
        print(f"adrel: {error}", file=sys.stderr)
        return 1
    return 0


def _serve(settings: Settings, log: BackgroundHandler) -> None:
    listener = bind(settings.host, settings.port)
    admin_listener = None
    if settings.admin_port is not None:
        admin_listener = bind(settings.admin_host, settings.admin_port)
    listed = settings.api_keys.get_secret_value() if settings.api_keys is not None else None
    keys = load_keys(listed, settings.api_keys_file)
    app = create_app(settings, load_model(settings), keys)
    state: ServiceState = app.state.service
    drain_s = math.ceil(settings.drain_timeout_s) + LAST_ANSWERS_S
    config = _server_config(
        public_door(app, keys),
        state,
        max_connections=settings.max_connections,
        timeout_graceful_shutdown=drain_s,
        lifespan="on",
    )
    admin = None
    if admin_listener is not None:
        admin_app = create_admin_app(state, [models_route.router, admin_routes.router])
        admin_config = _server_config(
            admin_door(admin_app, keys),
            state,
            max_connections=ADMIN_CONNECTIONS,
            timeout_graceful_shutdown=LAST_ANSWERS_S,
            lifespan="off",
        )
        admin = (AdminServer(admin_config), admin_listener)
    stop_limit_s = settings.shutdown_delay_s + drain_s + LAST_BATCHES_S + LAST_EXIT_S
    # Looked up when the signals come: the application sets them when it has started.
    server = Server(
        config,
        lambda: state.drain(),  # noqa: PLW0108
        lambda: state.on_hangup(),  # noqa: PLW0108
        admin,
        on_stop_signal=lambda: state.stop_is_asked(stop_limit_s),
        shutdown_delay_s=settings.shutdown_delay_s,
    )
    log.on_lost = state.metrics.process.log_line_lost
    state.metrics.connections.watch_open(lambda: len(server.server_state.connections))
    try:
        server.run(sockets=[listener])
    finally:
        if state.stuck_workers() or not _batches_end(
            state.running_batches, time.monotonic, time.sleep
        ):
            # A run that hangs in the runtime would hold the interpreter's exit for ever.
            logging.getLogger(__name__).error("a batch never ended; leaving without it")
            logging.shutdown()
            os._exit(0)


def _batches_end(
    running_batches: Callable[[], int],
    now_s: Callable[[], float],
    sleep: Callable[[float], None],
) -> bool:
    """Whether the batches end that a drain without time left in the workers: they are short."""
    until_s = now_s() + LAST_BATCHES_S
    while running_batches() > 0 and now_s() < until_s:
        sleep(LOOK_EVERY_S)
    return running_batches() == 0


def _server_config(
    app: ASGIApp,
    state: ServiceState,
    *,
    max_connections: int,
    timeout_graceful_shutdown: int,
    lifespan: Literal["on", "off"],
) -> uvicorn.Config:
    limits = ConnectionLimits(
        max_connections,
        body_timeout_s=state.limits.body_timeout_s,
        on_cut=state.metrics.connections.cut,
        on_late_body=mark_late,
    )
    return uvicorn.Config(
        app,
        http=guarded(limits),
        ws="none",  # nothing of ours speaks it
        log_config=None,  # ours is in place
        access_log=False,  # requests are counted in the metrics
        server_header=False,
        proxy_headers=False,  # we ask nobody for an address
        lifespan=lifespan,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=timeout_graceful_shutdown,
    )


if __name__ == "__main__":
    sys.exit(main())
