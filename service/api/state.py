"""What the routes need, put together by `service.app` once the model is ready."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fastapi import Request

from service.clock import Clock
from service.domain import ScoreAnswer, ScoreQuery
from service.errors import NotReady
from service.metrics.all_metrics import Metrics
from service.model_life.history import ModelHistory, ReloadReport, Tenure
from service.request_record import RequestRecord
from service.scorer import Scorer

DRAINING = "draining before a stop"


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What one request may ask for."""

    max_body_bytes: int
    body_timeout_s: float
    max_ads: int
    default_timeout_s: float
    max_timeout_s: float


def _nothing_to_reload() -> None:
    """What is loading before the model is ready is new enough."""


def _nothing_to_stop(_: float) -> None:
    """Before the model is ready a stop signal ends the process at once."""


async def _nothing_to_drain() -> None:
    """Before the model is ready nothing was accepted."""


@dataclass(frozen=True, slots=True)
class Serving:
    """The model that requests begin with.

    Attributes:
        scorer: Scores by it.
        facts: The answer of `GET /v1/model`.
    """

    scorer: Scorer[Any]
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reloads:
    """How to put another model in place of the one that serves.

    Attributes:
        reload: As `ModelLife.reload`.
        history: Of the models.
    """

    reload: Callable[[], Awaitable[ReloadReport]]
    history: Callable[[], ModelHistory]


@dataclass(frozen=True, slots=True)
class Shadowing:
    """A second model that scores a share of the answers again.

    Attributes:
        offer: As `ShadowScorer.offer`.
        forget: As `ShadowScorer.forget`.
        tenure: Which model, and since when.
        share: Of the requests, in 0-1.
    """

    offer: Callable[[ScoreQuery, ScoreAnswer], None]
    forget: Callable[[], None]
    tenure: Tenure
    share: float


ReadyParts = tuple[Scorer[Any], Clock, dict[str, Any]]
"""The scorer, the clock and the model's facts."""


@dataclass(slots=True)
class ServiceState:
    """One per process; read by the routes.

    Attributes:
        serving: None until the first model is ready; another one after a reload.
        reloads: None until the first model is ready.
        shadow: None where no second model is asked for.
        on_hangup: Asks for a reload without waiting for it; for a signal.
        stop_is_asked: A stop signal has come, and the process must have ended so many seconds
            from now. For a signal handler.
        drain: Ends the service in order: take no more, finish, give up when time is over.
        running_batches: How many run now.
        stuck_workers: Inference threads in a batch that does not end.
        usable_workers: All other inference threads.
        stopping: A stop signal has come: not ready for more, but what comes is still served.
        draining: What comes is refused.
        all_series: Gives the exposition of all workers; None where this process is alone.
        request_listeners: Called with the record of each request that has ended.
    """

    metrics: Metrics
    limits: RequestLimits
    clock: Clock | None = None
    serving: Serving | None = None
    reloads: Reloads | None = None
    shadow: Shadowing | None = None
    on_hangup: Callable[[], None] = _nothing_to_reload
    stop_is_asked: Callable[[float], None] = _nothing_to_stop
    drain: Callable[[], Awaitable[None]] = _nothing_to_drain
    running_batches: Callable[[], int] = int
    stuck_workers: Callable[[], int] = int
    usable_workers: Callable[[], int] = int
    stopping: bool = False
    draining: bool = False
    all_series: Callable[[], Awaitable[bytes]] | None = None
    request_listeners: tuple[Callable[[RequestRecord], None], ...] = ()

    def begin_with(self, serving: Serving) -> None:
        """Let requests begin with a model; the shadow compares no more with the one before it."""
        self.serving = serving
        if self.shadow is not None:
            self.shadow.forget()

    def why_not_live(self) -> str | None:
        """What only a new process can cure, or None."""
        n_stuck = self.stuck_workers()
        if n_stuck:
            return f"{n_stuck} of {n_stuck + self.usable_workers()} inference threads are stuck"
        return None

    def why_not_ready(self) -> str | None:
        """The reason to send no traffic, or None."""
        return DRAINING if self.stopping else self._why_refused()

    def _why_refused(self) -> str | None:
        """The reason not to serve what comes all the same, or None."""
        if self.draining:
            return DRAINING
        if self.serving is None:
            return "the model is still loading"
        if self.stuck_workers() and self.usable_workers() == 0:
            return "every inference thread is stuck"
        return None

    def ready_parts(self) -> ReadyParts:
        """The scorer, the clock and the model's facts.

        After the next `await` another model may serve: what an answer says of its model comes from
        the same call as the scorer.

        Raises:
            NotReady: The model is loading or the service drains.
        """
        why = self._why_refused()
        if why is not None or self.serving is None or self.clock is None:
            raise NotReady(why or "starting")
        return self.serving.scorer, self.clock, self.serving.facts

    def ready_reloads(self) -> Reloads:
        """Reloads and the models' history.

        Raises:
            NotReady: The first model is loading or the service drains.
        """
        why = self.why_not_ready()
        if why is not None or self.reloads is None:
            raise NotReady(why or "starting")
        return self.reloads


def state_of(request: Request) -> ServiceState:
    """The process's state, from the app that serves the request."""
    state = request.app.state.service
    assert isinstance(state, ServiceState)  # noqa: S101  # set by create_app
    return state
