"""The policy alone: every rule, and the bounds for any numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from service.client.retry import (
    Retries,
    RetryBudget,
    RetryPolicy,
    is_retryable,
    wait_before_retry_s,
)

BUSY = Overloaded("queue_full", "m", (), 0.02, 429)
UNREADY = NotReady("not_ready", "m", (), None, 503)
REFUSED = ConnectionFailed("refused", unread=True)


@pytest.mark.parametrize("error", [BUSY, UNREADY, REFUSED])
def test_what_cost_the_service_nothing_is_tried_again(error: AdrelError) -> None:
    assert is_retryable(error)


@pytest.mark.parametrize(
    "error",
    [
        Overloaded("queue_full", "names no time to come back", (), None, 429),
        NotReady("http_503", "a proxy's", (), 1.0, 503),
        ConnectionFailed("no HTTP, or broke off", unread=False),
        DeadlineExceeded("deadline_exceeded", "m"),
        ServiceFailed("inference_failed", "m", (), 0.01, 500),
        RequestRefused("invalid_request", "m", (), 0.01, 422),
        BadAnswer("bad_answer", "m"),
        WrongEndpoint("unknown_host", "m"),
    ],
)
def test_all_else_is_final(error: AdrelError) -> None:
    assert not is_retryable(error)
    policy = RetryPolicy(max_attempts=10)
    assert wait_before_retry_s(policy, error, attempts=1, left_s=1e6, chance=0) is None


def test_the_wait_starts_at_what_the_service_names_and_adds_chance_to_it() -> None:
    policy = RetryPolicy(base_ms=10)
    assert wait_before_retry_s(policy, BUSY, 1, left_s=1, chance=0) == pytest.approx(0.02)
    assert wait_before_retry_s(policy, BUSY, 1, left_s=1, chance=0.5) == pytest.approx(0.025)


def test_bounds_of_the_wait_double_up_to_the_cap() -> None:
    policy = RetryPolicy(max_attempts=10, base_ms=10, cap_ms=35)
    waits = [wait_before_retry_s(policy, REFUSED, n, left_s=1, chance=1) for n in (1, 2, 3, 4)]
    assert waits == pytest.approx([0.010, 0.020, 0.035, 0.035])


def test_a_retry_that_leaves_no_useful_time_is_not_made() -> None:
    policy = RetryPolicy(least_left_ms=5)
    assert wait_before_retry_s(policy, BUSY, 1, left_s=0.0251, chance=0) is not None
    assert wait_before_retry_s(policy, BUSY, 1, left_s=0.0249, chance=0) is None


def test_the_last_attempt_is_the_last() -> None:
    policy = RetryPolicy(max_attempts=3)
    assert wait_before_retry_s(policy, REFUSED, 2, left_s=1, chance=0) is not None
    assert wait_before_retry_s(policy, REFUSED, 3, left_s=1, chance=0) is None


@given(
    policy=st.builds(
        RetryPolicy,
        max_attempts=st.integers(1, 10),
        base_ms=st.floats(0, 1e4),
        cap_ms=st.floats(0, 1e4),
        least_left_ms=st.floats(0, 100),
    ),
    attempts=st.integers(1, 20),
    left_s=st.floats(-1, 100),
    chance=st.floats(0, 1),
    retry_after_s=st.floats(0, 100),
)
def test_no_wait_is_too_soon_too_long_or_one_too_many(
    policy: RetryPolicy, attempts: int, left_s: float, chance: float, retry_after_s: float
) -> None:
    error = Overloaded("queue_full", "m", (), retry_after_s, 429)
    wait_s = wait_before_retry_s(policy, error, attempts, left_s, chance)
    if wait_s is not None:
        assert retry_after_s <= wait_s <= retry_after_s + policy.cap_ms / 1000
        assert wait_s + policy.least_left_ms / 1000 < left_s
        assert attempts < policy.max_attempts


def test_in_the_long_run_there_is_one_retry_for_ten_calls() -> None:
    budget = RetryBudget(RetryPolicy(budget_share=0.1, budget_burst=10))
    taken = 0
    for _ in range(1000):
        budget.call_began()
        taken += budget.take()
    assert taken == pytest.approx(10 + 100, abs=2)


def test_a_quiet_time_saves_up_no_more_than_the_burst() -> None:
    budget = RetryBudget(RetryPolicy(budget_share=1, budget_burst=3))
    for _ in range(100):
        budget.call_began()
    assert [budget.take() for _ in range(4)] == [True, True, True, False]


def test_a_child_process_does_not_wait_for_a_lock_of_its_parent() -> None:
    budget = RetryBudget(RetryPolicy(budget_burst=1))
    budget._lock.acquire()  # a thread of the parent holds it when the process is forked
    budget.renew()
    assert budget.take()


def test_a_failure_that_is_final_costs_no_budget() -> None:
    retries = Retries(RetryPolicy(budget_burst=1, budget_share=0), random=lambda: 0)
    final = ServiceFailed("inference_failed", "m")
    assert [retries.wait_s(final, 1, left_s=1) for _ in range(3)] == [None] * 3
    assert retries.wait_s(REFUSED, 1, left_s=1) is not None
    assert retries.wait_s(REFUSED, 1, left_s=1) is None


@pytest.mark.parametrize(
    "numbers",
    [{"max_attempts": 0}, {"max_attempts": 11}, {"base_ms": -1}, {"cap_ms": float("nan")}],
)
def test_a_policy_that_cannot_work_is_refused_by_name(numbers: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(numbers))):
        RetryPolicy(**numbers)  # type: ignore[arg-type]  # wrong on purpose
