"""One error of each kind, for the OpenAPI document: its bodies are made as those of real ones."""

from __future__ import annotations

from service.errors import (
    BodyTooLarge,
    ClientGone,
    DeadlineExceeded,
    DeadlineUnreachable,
    InferenceFailed,
    InvalidRequest,
    NotLive,
    NotReady,
    QueueFull,
    RequestTimeout,
    ServiceError,
    TooManyAds,
    Unauthorized,
    UnsupportedMediaType,
)

INTERNAL_ERROR = "internal error; see the service's log"

_MISSING = "Field required"

ERROR_EXAMPLES: tuple[ServiceError, ...] = (
    Unauthorized(has_key=False),
    InvalidRequest(f"query: {_MISSING}", [{"field": "query", "problem": _MISSING}]),
    TooManyAds(n_ads=1200, limit_ads=1000),
    UnsupportedMediaType("text/plain"),
    BodyTooLarge(limit_bytes=1_048_576),
    RequestTimeout(limit_s=10),
    ClientGone(),
    QueueFull(wait_s=5.2, limit_s=5.0, retry_after_s=0.9),
    DeadlineUnreachable(n_ads=20, wait_s=0.064, timeout_s=0.03, retry_after_s=0.04),
    NotReady("the model is still loading"),
    DeadlineExceeded(timeout_s=0.03, n_ads=20),
    InferenceFailed(),
    ServiceError(INTERNAL_ERROR),
)
"""In the order of the table of statuses."""

PROBE_EXAMPLES: tuple[ServiceError, ...] = (NotLive("1 of 2 inference threads are stuck"),)
"""Of what no request for scores can meet."""
