"""One process that serves: settings → socket → model → server."""

from __future__ import annotations

import logging
import math
import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import uvicorn
from pydantic import SecretStr
from starlette.types import ASGIApp

from service.api import admin_routes, models_route
from service.api.admin import create_admin_app
from service.api.body import mark_late
from service.api.doors import admin_door, public_door
from service.api.keys import Keys, load_keys
from service.api.state import ServiceState
from service.app import create_app, load_model, load_shadow
from service.connections import ConnectionLimits, guarded
from service.listening import bind
from service.log_writer import BackgroundHandler
from service.model_life.loaded_model import LoadedModel
from service.server import AdminServer, Server
from service.settings import Settings
from service.settings_given import log_differing

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


@dataclass(frozen=True, slots=True)
class Assembled:
    """What a server is made of.

    Attributes:
        state: Of the service.
        config: Of the server that scores.
        admin: The operators' server and its socket, where there is one.
        stop_limit_s: From the beginning of the drain to the end of the process, at most.
    """

    state: ServiceState
    config: uvicorn.Config
    admin: tuple[AdminServer, socket.socket] | None
    stop_limit_s: float


def serve(settings: Settings, log: BackgroundHandler) -> int:
    """Serve until a stop signal.

    Args:
        settings: Effective settings.
        log: Where its lines go; those that are lost are counted.

    Returns:
        0, the exit code of a stop.

    Raises:
        StartupError: It cannot be served here; the message says why.
    """
    listener = bind(settings.host, settings.port)
    admin_listener = None
    if settings.admin_port is not None:
        admin_listener = bind(settings.admin_host, settings.admin_port)
    keys = keys_of(settings)
    assembled = assemble(settings, load_model(settings), keys, admin_listener)
    log_differing(settings)
    state = assembled.state
    # Looked up when the signals come: the application sets them when it has started.
    server = Server(
        assembled.config,
        lambda: state.drain(),  # noqa: PLW0108
        lambda: state.on_hangup(),  # noqa: PLW0108
        assembled.admin,
        on_stop_signal=lambda: state.stop_is_asked(
            settings.shutdown_delay_s + assembled.stop_limit_s
        ),
        shutdown_delay_s=settings.shutdown_delay_s,
    )
    run(server, state, [listener], log)
    return 0


def keys_of(settings: Settings) -> Keys:
    """Those of callers and operators.

    Raises:
        StartupError: They cannot be read, or one is too short.
    """
    return Keys(
        load_keys(_listed(settings.api_keys), settings.api_keys_file),
        load_keys(_listed(settings.admin_keys), settings.admin_keys_file, "admin_keys"),
    )


def _listed(keys: SecretStr | None) -> str | None:
    return keys.get_secret_value() if keys is not None else None


def assemble(
    settings: Settings,
    model: LoadedModel,
    keys: Keys,
    admin_listener: socket.socket | None,
    mapped: Path | None = None,
) -> Assembled:
    """The applications behind their doors, with the limits of their connections.

    Args:
        settings: Effective settings.
        model: The first to serve.
        keys: Those that are asked for.
        admin_listener: The operators' socket, where there is one.
        mapped: Folder through which several processes share the weights.
    """
    app = create_app(settings, model, keys, load_shadow(settings), mapped)
    state: ServiceState = app.state.service
    drain_s = math.ceil(settings.drain_timeout_s) + LAST_ANSWERS_S
    stop_limit_s = drain_s + LAST_BATCHES_S + LAST_EXIT_S
    config = _server_config(
        public_door(app, keys.callers),
        state,
        max_connections=settings.max_connections,
        timeout_graceful_shutdown=drain_s,
        lifespan="on",
    )
    if admin_listener is None:
        return Assembled(state, config, None, stop_limit_s)
    admin_app = create_admin_app(state, [models_route.router, admin_routes.router])
    admin_config = _server_config(
        admin_door(admin_app, keys.of_admin_port),
        state,
        max_connections=ADMIN_CONNECTIONS,
        timeout_graceful_shutdown=LAST_ANSWERS_S,
        lifespan="off",
    )
    return Assembled(state, config, (AdminServer(admin_config), admin_listener), stop_limit_s)


def run(
    server: Server,
    state: ServiceState,
    listeners: Sequence[socket.socket],
    log: BackgroundHandler,
) -> None:
    """Run the server until it has stopped, and do not wait for a batch that never ends."""
    log.on_lost = state.metrics.process.log_line_lost
    state.metrics.connections.watch_open(lambda: len(server.server_state.connections))
    try:
        server.run(sockets=list(listeners))
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
