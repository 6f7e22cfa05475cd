"""One of several processes that serve on one port."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from typing import cast

import uvicorn

from service.app import load_model
from service.connections import GuardedProtocol
from service.log_writer import BackgroundHandler
from service.serve import assemble, keys_of, run
from service.settings import Settings
from service.startup_errors import NoSharedFolder
from service.workers.folder_life import hold
from service.workers.membership import Membership
from service.workers.shared_folder import BUNDLE, GRAPHS
from service.workers.spec import WorkerSpec
from service.workers.turns import ConnectionCounts
from service.workers.worker_server import WorkerServer


def serve(settings: Settings, spec: WorkerSpec, log: BackgroundHandler) -> None:
    """Serve until the supervisor says stop, or is gone.

    Args:
        settings: The service's.
        spec: What is this worker's own.
        log: Where its lines go.

    Raises:
        StartupError: It cannot be served here; the message says why.
    """
    try:
        hold(spec.folder)  # to the end of the process, which may outlive the supervisor's
    except OSError as error:
        raise NoSharedFolder(error) from error
    mapped = spec.folder / GRAPHS
    inherited, slot = spec.inherited, spec.number - 1
    mine = settings.model_copy(update=_own_settings(settings, spec))
    admin_listener = None
    if inherited.admin_listener is not None:
        admin_listener = socket.socket(fileno=inherited.admin_listener)
    counts = ConnectionCounts(inherited.counts, spec.n_workers)
    os.close(inherited.counts)
    assembled = assemble(mine, load_model(mine, mapped), keys_of(mine), admin_listener, mapped)
    assembled.config.http = _counted(assembled.config, lambda n_open: counts.set(slot, n_open))
    server = WorkerServer(
        assembled,
        Membership(assembled.state, socket.socket(fileno=inherited.link), spec.folder),
        socket.socket(fileno=inherited.listener),
        lambda n_new: counts.others_first(slot, n_new),
    )
    counts.set(slot, 0)
    run(server, assembled.state, [], log)


def _own_settings(settings: Settings, spec: WorkerSpec) -> dict[str, object]:
    own: dict[str, object] = {"bundle": spec.folder / BUNDLE}
    if settings.provider == "cpu" and settings.inference_threads == 0:
        own["inference_threads"] = spec.share.threads
    return own


def _counted(config: uvicorn.Config, on_change: Callable[[int], None]) -> type[GuardedProtocol]:
    """The server's protocol, which tells how many connections are open whenever that changes."""

    class Counted(GuardedProtocol):
        limits = cast("type[GuardedProtocol]", config.http).limits

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
            super().connection_made(transport)
            on_change(len(self.connections))

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            on_change(len(self.connections))

    return Counted
