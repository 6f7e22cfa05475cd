"""For callers of the service: ads in, typed scores out, on time. Needs httpx and nothing else.

    with AdrelClient("http://127.0.0.1:8000", timeout_ms=50) as adrel:
        result = adrel.score("running shoes", [Ad("A", title="Marathon shoes")], min_score=0.5)

`AsyncAdrelClient` is the same for asyncio. `score` raises an `AdrelError` where there is no answer;
`score_or_fallback` asks the caller's own function instead, so that an auction always gets one. What
is tried again, and why so little, stands in `service.client.retry`.
"""

from service.client.asynchronous import AsyncAdrelClient
from service.client.asynchronous_transport import KeepAliveTransport
from service.client.blocking import AdrelClient
from service.client.blocking_transport import DeadlineTransport
from service.client.call import CallOptions
from service.client.errors import (
    AdrelError,
    BadAnswer,
    ConnectionFailed,
    DeadlineExceeded,
    NotReady,
    Overloaded,
    RequestRefused,
    ServiceFailed,
    WrongEndpoint,
)
from service.client.fallback import Fallback
from service.client.result import AdResult, AdStatus, ModelIdentity, ScoreResult, Timing
from service.client.retry import RetryPolicy
from service.domain import Ad

__all__ = [
    "Ad",
    "AdResult",
    "AdStatus",
    "AdrelClient",
    "AdrelError",
    "AsyncAdrelClient",
    "BadAnswer",
    "CallOptions",
    "ConnectionFailed",
    "DeadlineExceeded",
    "DeadlineTransport",
    "Fallback",
    "KeepAliveTransport",
    "ModelIdentity",
    "NotReady",
    "Overloaded",
    "RequestRefused",
    "RetryPolicy",
    "ScoreResult",
    "ServiceFailed",
    "Timing",
    "WrongEndpoint",
]
