"""What the servers run: the applications, behind doors where the service asks for keys."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from starlette.types import ASGIApp

from service.api import error_handlers, openapi, playground_route
from service.api.compatible import routes as compatible
from service.api.explain_route import EXPLAIN_ROUTE
from service.api.front import Front, HeadAsGet
from service.api.key_guard import KeyGuard
from service.api.keys import ApiKeys
from service.api.score_route import SCORE_ROUTE
from service.errors import Unauthorized
from service.metrics.all_metrics import Metrics

PROBES = frozenset({"/livez", "/readyz", "/health", "/v2/health/live", "/v2/health/ready"})

OPEN_PATHS = PROBES | playground_route.PATHS | {openapi.DOCUMENT_PATH, openapi.PAGE_PATH}
"""Asked for without a key: what orchestrators and balancers probe, and the pages, which a browser
must have before anybody can type a key into them."""

ADMIN_OPEN_PATHS = frozenset({"/livez", "/readyz", "/metrics"})
"""Likewise on the admin port, which scrapers reach and callers do not."""


def public_door(app: FastAPI, keys: ApiKeys | None) -> ASGIApp:
    """The short way to the scores, for who has a key.

    Args:
        app: The application.
        keys: Of the callers; None where everybody is served.
    """
    if keys is None:
        return Front(app)
    metrics: Metrics = app.state.service.metrics

    def refuse(request: Request, error: Unauthorized) -> Response:
        metrics.keys.unauthorized(has_key=error.has_key)
        route = _counted_route(request.url.path)
        if route is not None:
            metrics.requests.refused_unread(route, error.code)
        return compatible.refusal(request, error)

    return KeyGuard(Front(app), keys, OPEN_PATHS, refuse)


def admin_door(app: FastAPI, keys: ApiKeys | None) -> ASGIApp:
    """The operators' application; what is more than a look needs a key there too.

    Args:
        app: What `create_admin_app` gave.
        keys: The operators', or the callers' where operators have none of their own; None where
            neither have any.
    """
    if keys is None:
        return HeadAsGet(app)
    metrics: Metrics = app.state.service.metrics

    def refuse(request: Request, error: Unauthorized) -> Response:
        metrics.keys.unauthorized(has_key=error.has_key)
        return error_handlers.service_error_response(request, error)

    return KeyGuard(HeadAsGet(app), keys, ADMIN_OPEN_PATHS, refuse)


def _counted_route(path: str) -> str | None:
    return path if path in (SCORE_ROUTE, EXPLAIN_ROUTE) else compatible.counted_route(path)
