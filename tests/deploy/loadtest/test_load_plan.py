from __future__ import annotations

import pytest

from deploy.loadtest.load_plan import (
    CAPACITY_LEAD_S,
    LOADS,
    MAX_REQUESTS,
    SETTLE_S,
    capacity_run,
    steps,
    timeline_step,
)


def test_the_capacity_is_that_of_a_closed_loop_of_patient_callers() -> None:
    run = capacity_run(10)
    assert run.user_rps == 0
    assert run.seconds == CAPACITY_LEAD_S + 10
    assert run.timeout_ms is not None
    assert run.timeout_ms >= 5000


def test_loads_come_from_low_to_high_at_multiples_of_the_capacity() -> None:
    planned = steps(40.0, [2.0, 0.5], 8)
    assert [step.load for step in planned] == [0.5, 2.0]
    assert [step.requests_per_s for step in planned] == [20.0, 80.0]
    for step in planned:
        assert step.run.users * step.run.user_rps == pytest.approx(step.requests_per_s)
        assert step.run.seconds == step.counted_s + SETTLE_S == 8 + SETTLE_S


def test_a_fast_service_is_not_asked_longer_than_it_takes() -> None:
    for step in steps(4000.0, LOADS, 60):
        assert step.counted_s * step.requests_per_s <= MAX_REQUESTS
    assert timeline_step(1000.0, "spike", 60).counted_s == MAX_REQUESTS / 2000


def test_the_usual_test_takes_about_two_minutes() -> None:
    runs = [capacity_run(10), *(step.run for step in steps(40.0, LOADS, 8))]
    runs.append(timeline_step(40.0, "spike", 25).run)
    assert 90 < sum(run.seconds for run in runs) < 120


def test_a_spike_stands_out_from_half_the_capacity() -> None:
    run = timeline_step(40.0, "spike", 25).run
    assert run.shape == "spike"
    assert run.users * run.user_rps == pytest.approx(80)
    assert run.base_users * run.user_rps == pytest.approx(20)


def test_a_run_is_told_to_locust_in_its_options() -> None:
    options = timeline_step(40.0, "ramp", 25).run.options()
    told = dict(zip(options[::2], options[1::2], strict=True))
    assert told == {
        "--users": "40",
        "--spawn-rate": "40",
        "--run-time": "25s",
        "--user-rps": "2",
        "--shape": "ramp",
        "--base-users": "1",
    }
    assert capacity_run(1).options()[-2:] == ["--timeout-ms", "10000"]
