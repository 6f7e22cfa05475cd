"""A service and a time that do what a test says."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from service.client import Ad, AdrelClient, AsyncAdrelClient, RetryPolicy

ADS = [Ad("A", title="red shoe", description="cheap"), Ad("B", text="blue bag")]
BASE_URL = "http://adrel.test"

Handler = Callable[[httpx.Request], httpx.Response]


@dataclass
class FakeTime:
    """Time that moves only when somebody waits."""

    now_s: float = 1000.0
    waits_s: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.waits_s.append(seconds)
        self.now_s += seconds

    async def sleep_async(self, seconds: float) -> None:
        self.sleep(seconds)


def answer_to(asked: dict[str, Any], **changes: object) -> dict[str, Any]:
    """What the service would say, with every ad scored."""
    scores = [
        {"id": ad["id"], "score": 0.5 + 0.1 * (index % 5), "status": "ok"}
        for index, ad in enumerate(asked["ads"])
    ]
    if "min_score" in asked:
        for one in scores:
            one["eligible"] = one["score"] >= asked["min_score"]
    answer = {
        "request_id": asked.get("request_id", "made-up-1"),
        "model": {"name": "tiny", "version": "abc"},
        "scores": scores,
        "timing_ms": {"encode": 0.5, "queue": 1, "inference": 2.25, "total": 3.75},
    }
    return {**answer, **changes}


def refusal(
    status: int, code: str, details: list[dict[str, Any]] | None = None, **headers: str
) -> httpx.Response:
    body = {"error": {"code": code, "message": f"because of {code}", "details": details or []}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json=body, headers=named)


def overloaded(retry_after_ms: float) -> httpx.Response:
    details = [{"predicted_ms": 90.0, "retry_after_ms": retry_after_ms}]
    return refusal(429, "queue_full", details, Retry_After="1")


@dataclass
class FakeService:
    """Answers with what stands next in its script, then with scores.

    An entry is a response, an error of httpx, or a function of the request.
    """

    script: list[httpx.Response | Exception | Handler] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    requests: list[httpx.Request] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        self.requests.append(request)
        self.asked.append(body)
        entry = self.script.pop(0) if self.script else httpx.Response(200, json=answer_to(body))
        if isinstance(entry, Exception):
            raise entry
        return entry if isinstance(entry, httpx.Response) else entry(request)


def blocking_client(
    service: Handler,
    time: FakeTime | None = None,
    *,
    timeout_ms: float = 100,
    retry: RetryPolicy | None = None,
    chance: float = 0.5,
) -> AdrelClient:
    time = time or FakeTime()
    return AdrelClient(
        BASE_URL,
        timeout_ms=timeout_ms,
        retry=retry,
        transport=httpx.MockTransport(service),
        clock=time.clock,
        sleep=time.sleep,
        random=lambda: chance,
    )


def async_client(
    service: Handler | Callable[[httpx.Request], Any],
    time: FakeTime | None = None,
    *,
    timeout_ms: float = 100,
    retry: RetryPolicy | None = None,
) -> AsyncAdrelClient:
    time = time or FakeTime()
    return AsyncAdrelClient(
        BASE_URL,
        timeout_ms=timeout_ms,
        retry=retry,
        transport=httpx.MockTransport(service),
        clock=time.clock,
        sleep=time.sleep_async,
        random=lambda: 0.5,
    )
