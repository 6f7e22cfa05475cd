from __future__ import annotations

import dataclasses
import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.capacity import measured
from deploy.capacity.plan import LIMITS, MOST_BUSY, CannotPlan, Demand, plan
from service.settings import Settings


def demand(**changes: Any) -> Demand:  # noqa: ANN401  # of several types
    usual = {"auctions_per_s": 500, "ads": 20, "timeout_ms": 100, "hit_share": 0.6}
    return Demand(**{**usual, **changes})


def test_the_pods_of_all_zones_but_one_are_enough() -> None:
    made = plan(demand(zones=3))
    assert made.pods % 3 == 0
    assert made.pods * 2 // 3 >= made.pods_after_loss > (made.pods - 3) * 2 // 3
    assert made.pods_after_loss > made.pods_for_load  # a zone's caches are lost with it


def test_a_single_zone_has_nothing_to_spare() -> None:
    made = plan(demand(zones=1))
    assert made.pods == made.pods_after_loss == made.pods_for_load
    assert made.hit_share_after_loss == 0.6


def test_what_a_pod_does_is_what_its_cores_can_do_while_they_are_busy() -> None:
    # 2 cores at 100 pairs/s each, 10 ads of which 5 are computed: 40 auctions/s at most.
    made = plan(
        demand(ads=10, hit_share=0.5, timeout_ms=5_000, cores_per_pod=2, pairs_per_s_per_core=100,
               busiest_over_mean=1)
    )  # fmt: skip
    assert made.busy == pytest.approx(MOST_BUSY)
    assert made.auctions_per_s_per_pod == pytest.approx(40 * MOST_BUSY, rel=0.01)


def test_the_busiest_pod_decides() -> None:
    even, uneven = plan(demand(busiest_over_mean=1)), plan(demand(busiest_over_mean=2))
    assert uneven.auctions_per_s_per_pod == pytest.approx(even.auctions_per_s_per_pod / 2)


def test_hits_are_not_free_for_the_one_thread_that_answers_them() -> None:
    made = plan(demand(hit_share=1, cores_per_pod=64, busiest_over_mean=1))
    assert made.auctions_per_s_per_pod == pytest.approx(0.5 * 43_100 / 20)


def test_the_smallest_fleet_is_chosen_among_the_sizes() -> None:
    chosen = plan(demand())
    by_size = [plan(demand(cores_per_pod=cores)) for cores in (2, 4, 8)]
    cores_of = {made.cores_per_pod: made.pods * made.cores_per_pod for made in by_size}
    assert chosen.pods * chosen.cores_per_pod == min(cores_of.values())


def test_the_share_of_busy_time_keeps_the_objective_in_a_simulated_queue() -> None:
    # An M/D/1 queue (Lindley's recursion) as busy as the plan allows: Kingman's bound is generous.
    asked = demand(hit_share=0, cores_per_pod=2, timeout_ms=100)
    made = plan(asked)
    service_s = 20 / measured.PAIRS_PER_S
    rng = random.Random(1)  # noqa: S311  # the same queue in every run
    wait_s, late, waits = 0.0, 0, 0.0
    n = 200_000
    for _ in range(n):
        wait_s = max(0.0, wait_s + service_s - rng.expovariate(made.busy / service_s))
        late += wait_s > made.wait_ms / 1000
        waits += wait_s
    assert late / n <= 1 - asked.objective
    assert waits / n == pytest.approx(made.queue_seconds, rel=0.1)


def test_a_timeout_shorter_than_an_idle_answer_cannot_be_planned_for() -> None:
    with pytest.raises(CannotPlan, match=r"timeout_ms: is 30, and 20 ads .* take 35 ms .* 41 ms"):
        plan(demand(timeout_ms=30, cores_per_pod=2))
    assert plan(demand(timeout_ms=41, cores_per_pod=2)).pods > 0


@pytest.mark.parametrize("name", LIMITS)
def test_what_no_fleet_has_is_refused_by_name(name: str) -> None:
    least, most, _ = LIMITS[name]
    for wrong in (least - 1, most + 1, math.nan):
        with pytest.raises(ValueError, match=f"^{name}: takes .*, got "):
            demand(**{name: wrong})


def test_every_field_has_limits() -> None:
    assert list(LIMITS) == [field.name for field in dataclasses.fields(Demand)]


def test_limits_and_margins_are_the_service_s_own() -> None:
    def default(name: str) -> float:
        return float(Settings.model_fields[name].default)

    assert LIMITS["ads"][1] == default("max_ads_per_request")
    assert LIMITS["timeout_ms"][1] == default("max_timeout_ms")
    assert demand().answer_margin_ms == default("answer_margin_ms")


@given(
    st.floats(1, 10_000),
    st.integers(1, 100),
    st.floats(20, 1_000),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_more_hits_and_more_time_never_need_more_cores(
    auctions_per_s: float, ads: int, timeout_ms: float, hits: float, more: float
) -> None:
    fixed = {"auctions_per_s": auctions_per_s, "ads": ads, "cores_per_pod": 8}
    try:
        made = plan(demand(**fixed, timeout_ms=timeout_ms, hit_share=hits))
    except CannotPlan:
        return
    more_hits = hits + (1 - hits) * more
    better = plan(demand(**fixed, timeout_ms=timeout_ms * (1 + more), hit_share=more_hits))
    assert better.pods <= made.pods
