"""What is told of one request when it has ended: to the metrics, the log and the traces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from service.domain import AdScore, Priority, StageTimes


@dataclass(slots=True)
class RequestRecord:
    """One request, filled in as it goes on.

    Attributes:
        route: The metrics' label.
        started_s: When it came, on the service's clock.
        headers: As the caller sent them; names in any case.
        request_id: The header's or made up, until the body's own is known.
        n_ads: 0 where the request ended before it was known.
        priority: Likewise of an auction.
        timeout_s: Likewise 0.
        times: Where the time went; None where there was no answer with scores.
        scores: Likewise empty.
        computed_tokens: Of the pairs that were computed for it, special tokens included.
        slack_s: Time left when the answer was made; negative: it left after its deadline.
        trace_id: Of the trace that it was told in; empty where nobody traces.
        outcome: `ok`, `partial` or the code of an error.
        duration_s: From the start to the end.
    """

    route: str
    started_s: float
    headers: Mapping[str, str]
    request_id: str
    n_ads: int = 0
    priority: Priority = Priority.AUCTION
    timeout_s: float = 0.0
    times: StageTimes | None = None
    scores: tuple[AdScore, ...] = ()
    computed_tokens: int = 0
    slack_s: float = 0.0
    trace_id: str = ""
    outcome: str = ""
    duration_s: float = 0.0
