from __future__ import annotations

import math
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from service.batching.planner import BatchLimits, BatchPlan, fair_batch_pairs, plan_batch

NOW_S = 50.0
CPU = BatchLimits(max_pairs=8, max_padded_tokens=512, max_padding_ratio=0.1)


@dataclass(frozen=True)
class Pair:
    arrival: int
    length_tokens: int = 20
    deadline_s: float = NOW_S + 1
    priority: int = 0
    turn: int = 0
    abandoned: bool = False


def plan(pairs: list[Pair], limits: BatchLimits = CPU) -> BatchPlan[Pair]:
    return plan_batch(pairs, limits, NOW_S)


def lengths(pairs: tuple[Pair, ...]) -> list[int]:
    return [pair.length_tokens for pair in pairs]


@st.composite
def waiting_pairs(draw: st.DrawFn) -> list[Pair]:
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(3, 128),
                st.sampled_from([NOW_S - 1, NOW_S, NOW_S + 0.01, NOW_S + 1, NOW_S + 60]),
                st.integers(0, 1),
                st.integers(0, 4),
                st.booleans(),
            ),
            max_size=60,
        )
    )
    return [Pair(i, n, d, p, t, a) for i, (n, d, p, t, a) in enumerate(rows)]


batch_limits = st.builds(
    BatchLimits,
    max_pairs=st.integers(1, 40),
    max_padded_tokens=st.integers(128, 4096),
    max_padding_ratio=st.floats(0, 0.9),
)


@given(waiting_pairs(), batch_limits)
def test_the_plan_is_a_partition_of_what_waits_and_keeps_its_order(
    pairs: list[Pair], limits: BatchLimits
) -> None:
    result = plan(pairs, limits)
    parts = (result.batch, result.expired, result.abandoned, result.left)
    assert sorted(p.arrival for part in parts for p in part) == [p.arrival for p in pairs]
    for part in parts:
        assert list(part) == sorted(part, key=lambda pair: pair.arrival)


@given(waiting_pairs(), batch_limits)
def test_a_batch_keeps_every_limit(pairs: list[Pair], limits: BatchLimits) -> None:
    batch = plan(pairs, limits).batch
    if not batch:
        return
    padded_tokens = len(batch) * max(lengths(batch))
    assert len(batch) <= limits.max_pairs
    assert padded_tokens <= limits.max_padded_tokens
    assert padded_tokens - sum(lengths(batch)) <= limits.max_padding_ratio * padded_tokens + 1e-9


@given(waiting_pairs(), batch_limits)
def test_the_batch_is_empty_only_when_nothing_live_waits(
    pairs: list[Pair], limits: BatchLimits
) -> None:
    live = [p for p in pairs if not p.abandoned and p.deadline_s > NOW_S]
    assert bool(plan(pairs, limits).batch) == bool(live)


@given(waiting_pairs(), batch_limits)
def test_no_dead_pair_costs_anything_and_no_live_one_is_dropped(
    pairs: list[Pair], limits: BatchLimits
) -> None:
    result = plan(pairs, limits)
    assert all(p.deadline_s > NOW_S and not p.abandoned for p in (*result.batch, *result.left))
    assert all(p.abandoned for p in result.abandoned)
    assert all(p.deadline_s <= NOW_S for p in result.expired)


@given(waiting_pairs(), batch_limits)
def test_the_most_urgent_pair_is_always_in_the_batch_with_its_own_class(
    pairs: list[Pair], limits: BatchLimits
) -> None:
    result = plan(pairs, limits)
    live = (*result.batch, *result.left)
    if not live:
        return
    first = min(live, key=lambda p: (p.priority, p.turn, p.deadline_s, -p.length_tokens))
    urgency = (first.priority, first.turn, first.deadline_s)
    assert urgency in [(p.priority, p.turn, p.deadline_s) for p in result.batch]
    assert {p.priority for p in result.batch} == {first.priority}


@given(waiting_pairs(), batch_limits)
def test_everything_live_is_served_after_finitely_many_plans(
    pairs: list[Pair], limits: BatchLimits
) -> None:
    left, rounds = list(pairs), 0
    while left:
        left = list(plan(left, limits).left)
        rounds += 1
        assert rounds <= len(pairs)


def test_neighbours_in_length_share_a_batch() -> None:
    mixed = [Pair(i, length) for i, length in enumerate([60, 10, 61, 11, 62, 10])]
    assert lengths(plan(mixed).batch) == [60, 61, 62]


def test_a_long_pair_is_not_padded_onto_short_ones_even_when_there_is_room() -> None:
    assert lengths(plan([Pair(0, 100), Pair(1, 10)]).batch) == [100]


def test_auctions_go_before_bulk_work_whatever_the_deadlines() -> None:
    bulk, auction = Pair(0, deadline_s=NOW_S + 0.01, priority=1), Pair(1, priority=0)
    assert plan([bulk, auction]).batch == (auction,)


def test_the_nearer_deadline_goes_first() -> None:
    limits = replace(CPU, max_pairs=1)
    late, soon = Pair(0, deadline_s=NOW_S + 9), Pair(1, deadline_s=NOW_S + 1)
    assert plan([late, soon], limits).batch == (soon,)


def test_a_small_request_does_not_wait_for_all_of_a_large_one() -> None:
    large = [Pair(i, turn=i // 8, deadline_s=NOW_S + 1) for i in range(8, 500)]
    small = Pair(500, length_tokens=90, turn=1, deadline_s=NOW_S + 2)
    result = plan([*large, small])
    assert small in plan(list(result.left)).batch


def test_workers_that_are_idle_together_end_together() -> None:
    assert fair_batch_pairs(20, idle_workers=2, max_pairs=8) == 5
    assert fair_batch_pairs(10, idle_workers=1, max_pairs=8) == 5
    assert fair_batch_pairs(3, idle_workers=2, max_pairs=8) == 2


@given(st.integers(1, 5000), st.integers(1, 64), st.integers(1, 128))
def test_a_fair_batch_takes_no_more_rounds_than_full_ones(
    n_waiting: int, idle_workers: int, max_pairs: int
) -> None:
    n_pairs = fair_batch_pairs(n_waiting, idle_workers, max_pairs)
    rounds = math.ceil(math.ceil(n_waiting / n_pairs) / idle_workers)
    full_rounds = math.ceil(math.ceil(n_waiting / max_pairs) / idle_workers)
    assert 1 <= n_pairs <= max_pairs
    assert rounds == full_rounds


def test_among_equals_the_longest_starts_first() -> None:
    limits = replace(CPU, max_pairs=1)
    assert lengths(plan([Pair(0, 10), Pair(1, 90), Pair(2, 40)], limits).batch) == [90]


def test_a_pair_at_its_deadline_is_expired() -> None:
    on_time, late = Pair(0, deadline_s=NOW_S + 1e-6), Pair(1, deadline_s=NOW_S)
    result = plan([on_time, late])
    assert (result.batch, result.expired) == ((on_time,), (late,))
