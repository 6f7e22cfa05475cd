"""What the routes need, put together by `service.app` once the model is ready."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fastapi import Request

from service.clock import Clock
from service.errors import NotReady
from service.metrics import Metrics
from service.request_record import RequestRecord
from service.scorer import Scorer


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What one request may ask for."""

    max_body_bytes: int
    body_timeout_s: float
    max_ads: int
    default_timeout_s: float
    max_timeout_s: float


async def _nothing_to_drain() -> None:
    """Before the model is ready nothing was accepted."""


@dataclass(slots=True)
class ServiceState:
    """One per process; read by the routes.

    Attributes:
        scorer: None until the model is ready.
        model: The answer of `GET /v1/model`.
        drain: Ends the service in order: take no more, finish, give up when time is over.
        running_batches: How many run now.
        draining: A stop signal has come.
        request_listeners: Called with the record of each request that has ended.
    """

    metrics: Metrics
    limits: RequestLimits
    clock: Clock | None = None
    scorer: Scorer[Any] | None = None
    model: dict[str, Any] | None = None
    drain: Callable[[], Awaitable[None]] = _nothing_to_drain
    running_batches: Callable[[], int] = int
    draining: bool = False
    request_listeners: tuple[Callable[[RequestRecord], None], ...] = ()

    def why_not_ready(self) -> str | None:
        """The reason, or None when requests are served."""
        if self.draining:
            return "draining before a stop"
        if self.scorer is None:
            return "the model is still loading"
        return None

    def ready_parts(self) -> tuple[Scorer[Any], Clock, dict[str, Any]]:
        """The scorer, the clock and the model's facts.

        Raises:
            NotReady: The model is loading or the service drains.
        """
        why = self.why_not_ready()
        if why is not None or self.scorer is None or self.clock is None or self.model is None:
            raise NotReady(why or "starting")
        return self.scorer, self.clock, self.model


def state_of(request: Request) -> ServiceState:
    """The process's state, from the app that serves the request."""
    state = request.app.state.service
    assert isinstance(state, ServiceState)  # noqa: S101  # set by create_app
    return state
