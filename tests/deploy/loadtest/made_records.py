"""Requests and reports, made up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from deploy.loadtest.answer_verdict import PairFate
from deploy.loadtest.request_record import RequestRecord

PAIRS = 20


def record(
    due_s: float,
    latency_ms: float = 10.0,
    fate: PairFate = "good",
    status: int | None = None,
    sent_late_ms: float = 0.0,
    cached_pairs: int = 0,
) -> RequestRecord:
    """A request all of whose pairs met one fate."""
    given = {"refused": 429, "deadline": 504, "failed": 500}.get(fate, 200)
    return RequestRecord(
        due_s,
        due_s + sent_late_ms / 1000,
        due_s + latency_ms / 1000,
        given if status is None else status,
        {fate: PAIRS},
        cached_pairs,
        None if fate == "good" else fate,
    )


def figures(asked: float, shares: Mapping[str, float], **others: Any) -> dict[str, Any]:  # noqa: ANN401  # JSON
    """Figures of a load; what is not in `shares` is good."""
    every = dict.fromkeys(get_args(PairFate), 0.0) | dict(shares)
    every["good"] = 1 - sum(every.values())
    return {
        "requests": 100,
        "asked_pairs_per_s": asked,
        "good_pairs_per_s": asked * every["good"],
        "shares": every,
        "p50_ms": 20.0,
        "p95_ms": 30.0,
        "p99_ms": 40.0,
        "cached_share": 0.0,
        "sent_late_p99_ms": 0.5,
        **others,
    }


def report(*, spike: bool = True, **others: Any) -> dict[str, Any]:  # noqa: ANN401  # JSON
    """A report of three loads, the first two of which were kept."""
    steps = [
        {"load": 0.5, "requests_per_s": 20.0, **figures(400.0, {"deadline": 0.002})},
        {"load": 0.8, "requests_per_s": 32.0, **figures(640.0, {"refused": 0.01}, p99_ms=87.0)},
        {
            "load": 2.0,
            "requests_per_s": 80.0,
            **figures(1600.0, {"refused": 0.55, "late": 0.05}, p99_ms=150.0),
        },
    ]
    quiet, loud = figures(400.0, {}), figures(1600.0, {"refused": 0.6})
    rows = [*[quiet] * 4, *[loud] * 2, figures(400.0, {"refused": 0.1}), *[quiet] * 3]
    timeline = {
        "shape": "spike",
        "base_pairs_per_s": 400.0,
        "peak_pairs_per_s": 1600.0,
        "rows": [{"at_s": at_s, **row} for at_s, row in enumerate(rows)],
    }
    return {
        "report_version": 1,
        "facts": {
            "model": {"name": "minilm", "version": "abc"},
            "service": "http://127.0.0.1:8000",
            "load_generator": {"cpu": "a processor", "cores": 2},
        },
        "settings": {"patience_ms": 155.0, "seed": 1},
        "model_versions": ["abc"],
        "capacity": {
            "requests_per_s": 40.0,
            "pairs_per_s": 800.0,
            "source": "a closed loop of 32 callers",
        },
        "steps": steps,
        "timeline": timeline if spike else None,
        "n_requests": 300,
        "failures": {"429 queue_full": 50},
        "fault_pairs": 0,
        "stopped": None,
        **others,
    }
