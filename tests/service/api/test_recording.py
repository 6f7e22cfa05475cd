from __future__ import annotations

import pytest

from service.api.error_handlers import STATUS_OF
from service.api.recording import auction_result
from service.domain import Priority
from service.metrics.request_metrics import AUCTION_RESULTS
from service.request_record import RequestRecord


def ended(
    outcome: str, slack_s: float = 0.01, priority: Priority = Priority.AUCTION
) -> RequestRecord:
    return RequestRecord(
        "/v1/score", 1.0, {}, "r-1", outcome=outcome, slack_s=slack_s, priority=priority
    )


@pytest.mark.parametrize(
    ("outcome", "slack_s", "result"),
    [
        ("ok", 0.01, "in_time"),
        ("ok", 0.0, "in_time"),
        ("ok", -0.001, "late"),
        ("partial", 0.01, "partial"),
        ("partial", -0.001, "late"),
        ("deadline_exceeded", 0.0, "nothing"),
        ("queue_full", 0.0, "nothing"),
        ("not_ready", 0.0, "nothing"),
        ("internal_error", 0.0, "nothing"),
        ("invalid_request", 0.0, None),
        ("body_too_large", 0.0, None),
        ("client_gone", 0.0, None),
    ],
)
def test_an_auction_gets_all_in_time_or_something_less(
    outcome: str, slack_s: float, result: str | None
) -> None:
    assert auction_result(ended(outcome, slack_s)) == result


@pytest.mark.parametrize("outcome", ["ok", "queue_full"])
def test_bulk_work_is_no_auction(outcome: str) -> None:
    assert auction_result(ended(outcome, priority=Priority.BATCH)) is None


def test_every_error_has_a_result_that_is_counted_or_is_its_callers_fault() -> None:
    results = {auction_result(ended(error.code)) for error in STATUS_OF}
    assert results - {None} <= set(AUCTION_RESULTS)
