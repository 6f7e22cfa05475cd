"""From the requests of a run to its figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, get_args

from deploy.benchmarks.load_client import percentile
from deploy.loadtest.answer_verdict import PairFate
from deploy.loadtest.request_record import RequestRecord

PERCENTILES = (50, 95, 99)


def figures_of(records: Sequence[RequestRecord], from_s: float, seconds: float) -> dict[str, Any]:
    """The figures of the requests that were due in a stretch of time.

    Args:
        records: In the order in which they were due.
        from_s: Start of the stretch, on the records' clock.
        seconds: Its length.

    Returns:
        Numbers by name, for JSON. Latencies are of requests that got scores, in time or not, from
        when they were due; null where there was none. Shares are of the pairs asked for.
    """
    mine = [one for one in records if from_s <= one.due_s < from_s + seconds]
    pairs: Counter[PairFate] = Counter()
    for record in mine:
        pairs.update(record.pairs)
    asked = pairs.total()
    scored = pairs["good"] + pairs["late"]
    latencies_ms = sorted(one.latency_ms for one in mine if one.is_answered)
    waits_ms = sorted((one.sent_s - one.due_s) * 1000 for one in mine)
    return {
        "requests": len(mine),
        "asked_pairs_per_s": asked / seconds,
        "good_pairs_per_s": pairs["good"] / seconds,
        "shares": {fate: pairs[fate] / asked if asked else 0.0 for fate in get_args(PairFate)},
        **{f"p{percent}_ms": _percentile(latencies_ms, percent) for percent in PERCENTILES},
        "cached_share": sum(one.cached_pairs for one in mine) / scored if scored else 0.0,
        "sent_late_p99_ms": _percentile(waits_ms, 99),
    }


def timeline(records: Sequence[RequestRecord], from_s: float, seconds: int) -> list[dict[str, Any]]:
    """The figures of each second of a run; `at_s` is its start, counted from that of the run."""
    return [{"at_s": at_s, **figures_of(records, from_s + at_s, 1)} for at_s in range(seconds)]


def capacity(
    records: Sequence[RequestRecord], from_s: float, seconds: float
) -> tuple[float, float]:
    """What a closed loop got: requests with scores and good pairs a second.

    Counted by when they were answered, since a closed loop asks as fast as it is answered.

    Args:
        records: All of the run.
        from_s: Where counting starts: not with the first requests, whose answers come all at once.
        seconds: How long is counted.
    """
    mine = [one for one in records if 0 <= one.answered_s - from_s < seconds and one.is_answered]
    return len(mine) / seconds, sum(one.pairs.get("good", 0) for one in mine) / seconds


def failures(records: Sequence[RequestRecord]) -> dict[str, int]:
    """How many requests failed in which way, the most frequent first."""
    counted = Counter(one.failure for one in records if one.failure is not None)
    return dict(counted.most_common())


def fault_pairs(records: Sequence[RequestRecord]) -> int:
    """Pairs that met a fault: a malformed answer, an error that is no overload, or none at all."""
    return sum(one.pairs.get("failed", 0) for one in records)


def _percentile(ordered: Sequence[float], percent: float) -> float | None:
    value = percentile(ordered, percent)
    return None if math.isnan(value) else value
