from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.client.deadline import MAX_TIMEOUT_MS, Deadline, service_timeout_ms
from service.settings import Settings
from tests.service.client.stand_ins import FakeTime


def test_time_runs_out_by_the_injected_clock() -> None:
    time = FakeTime()
    deadline = Deadline.after(50, time.clock)
    time.now_s += 0.03
    assert deadline.left_s() == pytest.approx(0.02)
    assert deadline.elapsed_ms() == pytest.approx(30)


@pytest.mark.parametrize("timeout_ms", [0, -1, float("nan"), float("inf"), 60_001])
def test_a_timeout_that_is_none_is_refused(timeout_ms: float) -> None:
    with pytest.raises(ValueError, match="timeout_ms"):
        Deadline.after(timeout_ms, FakeTime().clock)


def test_no_timeout_is_taken_that_the_service_refuses_by_itself() -> None:
    assert Settings.model_fields["max_timeout_ms"].default == MAX_TIMEOUT_MS
    assert Deadline.after(MAX_TIMEOUT_MS, FakeTime().clock).left_s() == 60


def test_the_way_there_and_back_is_kept_from_the_service() -> None:
    assert service_timeout_ms(0.05, network_margin_ms=2) == pytest.approx(48)


def test_of_a_short_time_at_most_a_quarter_is_kept() -> None:
    assert service_timeout_ms(0.004, network_margin_ms=2) == pytest.approx(3)


@given(left_s=st.floats(1e-6, 1e6), margin_ms=st.floats(0, 1e6))
def test_the_service_always_gets_some_time_and_never_more_than_is_left(
    left_s: float, margin_ms: float
) -> None:
    assert 0 < service_timeout_ms(left_s, margin_ms) <= left_s * 1000
