"""The operators' port: metrics, probes and reloads, apart from what callers reach."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute

from service.api import error_handlers, probes
from service.api.state import ServiceState


def create_admin_app(state: ServiceState, routers: Sequence[APIRouter] = ()) -> FastAPI:
    """The application of the admin port.

    Args:
        state: The service's; shared with the application that scores.
        routers: What else operators may do there.
    """
    app = FastAPI(title="adrel admin", openapi_url=None, redirect_slashes=False)
    app.state.service = state
    paths: set[str] = set()
    for router in (probes.router, probes.metrics_router, *routers):
        app.include_router(router)
        paths |= {route.path for route in router.routes if isinstance(route, APIRoute)}
    there = f"the operators' port has {', '.join(sorted(paths))}"
    error_handlers.install(app, what_there_is=there)
    return app
