"""Composition root: builds every part and joins them.

Read `_lifespan` top to bottom; its reverse is the order of the shutdown.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from service.api import (
    error_handlers,
    explain_route,
    models_route,
    openapi,
    playground_route,
    probes,
    score_route,
)
from service.api.compatible import routes as compatible
from service.api.compatible.release import release
from service.api.doors import OPEN_PATHS
from service.api.keys import NO_KEYS, Keys
from service.api.state import RequestLimits, ServiceState
from service.clock import LoopClock
from service.composition.background import up_to_date
from service.composition.inference import batch_limits, model_source
from service.composition.recording import recording
from service.composition.serving import serving
from service.composition.shadowing import shadowing
from service.composition.watching import watching
from service.metrics.all_metrics import Metrics
from service.model_life.loaded_model import LoadedModel
from service.served_model import ServedModel
from service.settings import Settings
from service.shadow.shadow_model import ShadowModel
from service.shadow.shadow_model import load_shadow as open_shadow


def load_model(settings: Settings, mapped: Path | None = None) -> LoadedModel:
    """The model that the settings name: opened, checked against them, and self-tested.

    Args:
        settings: Effective settings.
        mapped: Folder through which several processes share the weights.

    Raises:
        StartupError: It cannot be served here; the message says why.
    """
    model = model_source(settings, mapped).load()
    assert model is not None  # noqa: S101  # there is none before it that it could equal
    return model


def load_shadow(settings: Settings) -> ShadowModel | None:
    """The model that scores as the shadow; None where none is asked for.

    Raises:
        StartupError: It could not be served here; the message says why.
    """
    if settings.shadow_bundle is None:
        return None
    return open_shadow(settings.shadow_bundle, settings.provider, batch_limits(settings))


def create_app(
    settings: Settings,
    model: LoadedModel,
    keys: Keys = NO_KEYS,
    shadow: ShadowModel | None = None,
    mapped: Path | None = None,
) -> FastAPI:
    """The application around a model that has passed its self-test.

    Args:
        settings: Effective settings.
        model: What `load_model` gave for them; the first to serve.
        keys: Those that are asked for; kept up to date as long as the application runs.
        shadow: What `load_shadow` gave for the settings.
        mapped: As `load_model` takes it; for the models after the first.
    """
    state = ServiceState(_metrics(), _request_limits(settings))
    state.metrics.process.watch_ready(lambda: state.why_not_ready() is None)
    for whose, some in (("callers", keys.callers), ("operators", keys.operators)):
        if some is not None:
            state.metrics.keys.watch(whose, some)
    first = [model]  # handed on: held here, it would outlive the models after it
    del model
    app = FastAPI(
        title="adrel",
        summary="How relevant is each ad to this query?",
        lifespan=lambda _: _lifespan(settings, state, first, keys, shadow, mapped),
        openapi_url=None,  # `openapi.install` serves the document, and the page that shows it
        redirect_slashes=False,
    )
    app.state.service = state
    _include_routes(app, settings)
    error_handlers.install(app, compatible.routing_error)
    open_paths = OPEN_PATHS if keys.callers is not None else None
    openapi.install(app, state.limits, [ServedModel], open_paths)
    return app


@asynccontextmanager
async def _lifespan(
    settings: Settings,
    state: ServiceState,
    first: list[LoadedModel],
    keys: Keys,
    shadow: ShadowModel | None,
    mapped: Path | None,
) -> AsyncIterator[None]:
    clock = state.clock = LoopClock()
    async with (
        recording(state, clock, every_request=settings.log_requests),
        serving(settings, state, clock, first, mapped) as batcher,
        watching(settings.watchdog_s, state, clock, batcher),
        shadowing(settings, state, clock, shadow, batcher),
        up_to_date(keys.callers),
        up_to_date(keys.operators),
    ):
        yield


def _metrics() -> Metrics:
    outcomes = ["ok", "partial", *error_handlers.error_codes()]
    routes = [score_route.SCORE_ROUTE, explain_route.EXPLAIN_ROUTE, *compatible.COUNTED_ROUTES]
    metrics = Metrics(CollectorRegistry(), routes, outcomes)
    metrics.process.release_runs(release())
    return metrics


def _request_limits(settings: Settings) -> RequestLimits:
    return RequestLimits(
        max_body_bytes=settings.max_body_bytes,
        body_timeout_s=settings.body_timeout_s,
        max_ads=settings.max_ads_per_request,
        default_timeout_s=settings.default_timeout_ms / 1000,
        max_timeout_s=settings.max_timeout_ms / 1000,
    )


def _include_routes(app: FastAPI, settings: Settings) -> None:
    app.include_router(score_route.router)
    app.include_router(explain_route.router)
    if settings.playground:
        app.include_router(playground_route.router)
    app.include_router(probes.router)
    app.include_router(models_route.router)
    if settings.admin_port is None:
        app.include_router(probes.metrics_router)
    for router in compatible.ROUTERS:
        app.include_router(router)
