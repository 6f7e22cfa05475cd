from __future__ import annotations

import logging
from typing import Any

import pytest

from service.api.request_log import RequestLog
from service.domain import AdScore, PairStatus, StageTimes
from service.log_limit import LINES_PER_S
from service.request_record import RequestRecord
from tests.fakes import FakeClock

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"


def ended(outcome: str, **fields: Any) -> RequestRecord:  # noqa: ANN401  # any of its fields
    fields = {"headers": {}, "request_id": "r-1", **fields}
    return RequestRecord("/v1/score", 1.0, outcome=outcome, **fields)


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records]


@pytest.fixture(autouse=True)
def _all_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)


def test_a_request_that_ended_well_has_no_line_unless_all_are_asked_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    RequestLog(FakeClock())(ended("ok"))
    assert lines(caplog) == []
    for _ in range(3 * LINES_PER_S):
        RequestLog(FakeClock(), every_request=True)(ended("ok"))
    assert [line["levelname"] for line in lines(caplog)] == ["INFO"] * 3 * LINES_PER_S


def test_a_line_says_which_request_ended_how_and_where_its_time_went(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scores = (
        AdScore("a", 0.5, PairStatus.OK, truncated=False),
        AdScore("b", None, PairStatus.DEADLINE, truncated=False),
    )
    record = ended(
        "partial",
        request_id="auction-7",
        n_ads=2,
        timeout_s=0.03,
        scores=scores,
        slack_s=0.002,
        times=StageTimes(0.001, 0.002, 0.025, 0.028),
        duration_s=0.0285,
        headers={"traceparent": f"00-{TRACE_ID}-00f067aa0ba902b7-01"},
    )
    RequestLog(FakeClock())(record)
    [line] = lines(caplog)
    assert line["levelname"] == "WARNING"
    assert (line["route"], line["outcome"], line["request_id"]) == (
        "/v1/score",
        "partial",
        "auction-7",
    )
    assert (line["n_ads"], line["n_scored"], line["timeout_ms"], line["slack_ms"]) == (2, 1, 30, 2)
    assert line["timing_ms"] == {"encode": 1, "queue": 2, "inference": 25, "total": 28.5}
    assert line["trace_id"] == TRACE_ID


@pytest.mark.parametrize(
    "header",
    [
        "",
        f"00-{TRACE_ID}-00f067aa0ba902b7",
        f"ff-{TRACE_ID}-00f067aa0ba902b7-01",
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-{TRACE_ID}-{'0' * 16}-01",
        f"00-{TRACE_ID.upper()}-00f067aa0ba902b7-01",
        f"00-{TRACE_ID}-00f067aa0ba902b7-01 text",
    ],
)
def test_a_trace_that_is_not_valid_is_not_logged(
    caplog: pytest.LogCaptureFixture, header: str
) -> None:
    RequestLog(FakeClock())(ended("queue_full", headers={"traceparent": header}))
    assert "trace_id" not in lines(caplog)[0]


def test_more_than_so_many_lines_a_second_of_one_outcome_are_counted_instead(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FakeClock()
    log = RequestLog(clock)
    for _ in range(LINES_PER_S + 7):
        log(ended("queue_full"))
    log(ended("not_ready"))
    assert len(lines(caplog)) == LINES_PER_S + 1
    clock.advance(1.0)
    *_, last = lines(caplog)
    assert (last["outcome"], last["suppressed"]) == ("queue_full", 7)


def test_the_next_second_has_its_own_lines_and_a_calm_one_has_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FakeClock()
    log = RequestLog(clock)
    for _ in range(3):
        log(ended("queue_full"))
        clock.advance(1.0)
    assert [line["message"] for line in lines(caplog)] == ["request"] * 3
    clock.advance(60.0)
    assert len(lines(caplog)) == 3
