from __future__ import annotations

import pytest

from deploy.loadtest.load_figures import capacity, failures, fault_pairs, figures_of, timeline
from tests.deploy.loadtest.made_records import PAIRS, record


def test_figures_are_of_the_requests_that_were_due_in_the_stretch() -> None:
    records = [record(9.9), record(10.0), record(11.0, latency_ms=5000), record(12.0)]
    found = figures_of(records, from_s=10, seconds=2)
    assert found["requests"] == 2
    assert found["asked_pairs_per_s"] == PAIRS
    assert found["p99_ms"] == pytest.approx(5000)  # answered after it, and of it all the same


def test_good_pairs_are_counted_apart_from_what_was_asked() -> None:
    records = [
        record(0),
        record(0.1, fate="refused"),
        record(0.2, fate="late"),
        record(0.3, fate="deadline"),
    ]
    found = figures_of(records, 0, 1)
    assert found["asked_pairs_per_s"] == 4 * PAIRS
    assert found["good_pairs_per_s"] == PAIRS
    assert found["shares"] == {
        "good": 0.25, "refused": 0.25, "late": 0.25, "deadline": 0.25, "failed": 0.0,
    }  # fmt: skip


def test_latencies_are_of_answers_with_scores_and_quick_refusals_do_not_mend_them() -> None:
    slow = [record(i / 1000, latency_ms=float(i)) for i in range(1, 101)]
    refused = [record(0.5, latency_ms=0.1, fate="refused")] * 900
    found = figures_of(sorted([*slow, *refused], key=lambda one: one.due_s), 0, 1)
    assert found["p50_ms"] == pytest.approx(50)
    assert found["p95_ms"] == pytest.approx(95)
    assert found["p99_ms"] == pytest.approx(99)


def test_a_request_that_was_sent_late_has_waited() -> None:
    found = figures_of([record(0, latency_ms=30, sent_late_ms=20)], 0, 1)
    assert found["p50_ms"] == pytest.approx(30)
    assert found["sent_late_p99_ms"] == pytest.approx(20)


def test_a_stretch_without_requests_has_no_latency() -> None:
    found = figures_of([], 0, 1)
    assert found["p50_ms"] is found["sent_late_p99_ms"] is None
    assert found["asked_pairs_per_s"] == found["shares"]["good"] == found["cached_share"] == 0


def test_the_cached_share_is_of_the_scores() -> None:
    records = [record(0, cached_pairs=5), record(0.1, fate="late"), record(0.2, fate="refused")]
    assert figures_of(records, 0, 1)["cached_share"] == 5 / (2 * PAIRS)


def test_a_timeline_has_a_row_for_each_second() -> None:
    rows = timeline([record(100.2), record(102.1), record(102.9)], from_s=100, seconds=3)
    assert [row["at_s"] for row in rows] == [0, 1, 2]
    assert [row["requests"] for row in rows] == [1, 0, 2]


def test_the_capacity_counts_answers_after_the_lead() -> None:
    answered = [record(at_s, latency_ms=100) for at_s in (0.0, 1.0, 2.0, 3.0, 9.0)]
    refused = record(2.5, fate="refused")
    assert capacity([*answered, refused], from_s=1, seconds=2.5) == (3 / 2.5, 3 * PAIRS / 2.5)


def test_failures_are_counted_with_the_most_frequent_first() -> None:
    records = [record(0), record(1, fate="late"), *[record(2, fate="refused")] * 2]
    assert list(failures(records).items()) == [("refused", 2), ("late", 1)]
    assert fault_pairs(records) == 0
    assert fault_pairs([*records, record(3, fate="failed")]) == PAIRS
