from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.batching.cost_model import BatchCost
from service.batching.planner import (
    BatchLimits,
    BatchPlan,
    fair_batch_pairs,
    most_urgent,
    plan_batch,
)
from service.batching.waiting import WaitingPairs

NOW_S = 50.0
FAR_S = NOW_S + 1000
CPU = BatchLimits(max_pairs=8, max_padded_tokens=512, max_padding_ratio=0.1)
COST = BatchCost(per_batch_s=1e-3, per_token_s=1e-4, per_square_s=1e-7)


@dataclass(frozen=True)
class Pair:
    length_tokens: int = 20
    deadline_s: float = FAR_S
    priority: int = 0
    turn: float = NOW_S
    latest_start_s: float = FAR_S


@dataclass(frozen=True)
class Plan:
    batch: list[Pair]
    doomed: list[Pair]
    left: list[Pair]


def plan(pairs: Sequence[Pair], limits: BatchLimits = CPU, cost: BatchCost = COST) -> Plan:
    table = np.array(
        [[p.length_tokens, p.priority, p.turn, p.latest_start_s, p.deadline_s] for p in pairs],
        dtype=np.float64,
    ).reshape(-1, 5)
    result = plan_batch(WaitingPairs(*table.T), limits, cost, NOW_S)
    taken = {*result.batch.tolist(), *result.doomed.tolist()}
    assert len(taken) == len(result.batch) + len(result.doomed), "a pair is in two parts"
    return Plan(
        batch=[pairs[row] for row in result.batch],
        doomed=[pairs[row] for row in result.doomed],
        left=[pair for row, pair in enumerate(pairs) if row not in taken],
    )


def lengths(pairs: Sequence[Pair]) -> list[int]:
    return [pair.length_tokens for pair in pairs]


def alone_s(pair: Pair) -> float:
    return COST.batch_s(1, float(pair.length_tokens))


waiting_pairs = st.lists(
    st.builds(
        Pair,
        length_tokens=st.integers(3, 128),
        deadline_s=st.sampled_from([NOW_S - 1, NOW_S, NOW_S + 0.01, NOW_S + 0.02, FAR_S]),
        priority=st.integers(0, 1),
        turn=st.floats(NOW_S - 5, NOW_S + 5),
        latest_start_s=st.one_of(st.just(FAR_S), st.floats(NOW_S - 1, NOW_S + 1)),
    ),
    max_size=60,
)
batch_limits = st.builds(
    BatchLimits,
    max_pairs=st.integers(1, 40),
    max_padded_tokens=st.integers(128, 4096),
    max_padding_ratio=st.floats(0, 0.9),
)


@given(waiting_pairs, batch_limits)
def test_a_batch_keeps_every_limit(pairs: list[Pair], limits: BatchLimits) -> None:
    batch = plan(pairs, limits).batch
    if not batch:
        return
    padded_tokens = len(batch) * max(lengths(batch))
    assert len(batch) <= limits.max_pairs
    assert padded_tokens <= limits.max_padded_tokens
    assert padded_tokens - sum(lengths(batch)) <= limits.max_padding_ratio * padded_tokens + 1e-9


@given(waiting_pairs, batch_limits)
def test_a_batch_is_predicted_to_end_before_each_of_its_deadlines(
    pairs: list[Pair], limits: BatchLimits
) -> None:
    batch = plan(pairs, limits).batch
    if batch:
        ends_s = NOW_S + COST.batch_s(len(batch), float(max(lengths(batch))))
        assert all(pair.deadline_s >= ends_s for pair in batch)


@given(waiting_pairs, batch_limits)
def test_what_cannot_be_done_in_time_even_alone_is_doomed_and_nothing_else_is(
    pairs: list[Pair], limits: BatchLimits
) -> None:
    result = plan(pairs, limits)
    assert all(pair.deadline_s < NOW_S + alone_s(pair) for pair in result.doomed)
    assert all(pair.deadline_s >= NOW_S + alone_s(pair) for pair in result.batch + result.left)


@given(waiting_pairs, batch_limits)
def test_the_batch_is_empty_only_when_nothing_can_be_done_in_time(
    pairs: list[Pair], limits: BatchLimits
) -> None:
    result = plan(pairs, limits)
    assert bool(result.batch) == bool(result.batch or result.left)


@given(waiting_pairs, batch_limits)
def test_a_batch_is_of_one_class_and_of_the_first_that_waits(
    pairs: list[Pair], limits: BatchLimits
) -> None:
    result = plan(pairs, limits)
    if result.batch:
        first = min(pair.priority for pair in result.batch + result.left)
        assert {pair.priority for pair in result.batch} == {first}


@given(waiting_pairs, batch_limits)
def test_everything_that_can_be_done_is_served_after_finitely_many_plans(
    pairs: list[Pair], limits: BatchLimits
) -> None:
    left, rounds = pairs, 0
    while left:
        left = plan(left, limits).left
        rounds += 1
        assert rounds <= len(pairs)


@given(waiting_pairs)
def test_the_earliest_turn_is_always_served_where_nobody_is_short_of_time(
    pairs: list[Pair],
) -> None:
    patient = [replace(p, deadline_s=FAR_S, latest_start_s=FAR_S) for p in pairs]
    batch = plan(patient).batch
    if batch:
        auctions = [p for p in patient if p.priority == batch[0].priority]
        assert min(p.turn for p in auctions) in [p.turn for p in batch]


def test_a_full_batch_has_as_many_pairs_as_its_tokens_allow() -> None:
    limits = BatchLimits(max_pairs=32, max_padded_tokens=512, max_padding_ratio=0.1)
    by_length = {4: 32, 16: 32, 20: 25, 64: 8, 300: 1, 600: 1}
    assert {length: limits.full_pairs(length) for length in by_length} == by_length
    many = np.array(list(by_length), dtype=np.float64)
    assert limits.full_pairs_of(many).tolist() == list(by_length.values())


def test_a_pair_that_is_longer_than_a_batch_runs_alone() -> None:
    long, short = Pair(length_tokens=600, turn=NOW_S - 1), Pair()
    for pairs in ([long], [long, short], [long, Pair(length_tokens=600)]):
        assert plan(pairs).batch == [long]


def test_neighbours_in_length_share_a_batch() -> None:
    mixed = [Pair(length) for length in [60, 10, 61, 11, 62, 10]]
    first = plan([replace(mixed[0], turn=NOW_S - 1), *mixed[1:]])
    assert lengths(first.batch) == [60, 61, 62]
    assert lengths(plan(first.left).batch) == [10, 10, 11]


def test_a_long_pair_is_not_padded_onto_short_ones_even_when_there_is_room() -> None:
    assert lengths(plan([Pair(100, turn=NOW_S - 1), Pair(10)]).batch) == [100]


def test_padding_is_taken_where_runs_are_dear_and_not_where_they_are_cheap() -> None:
    pairs = [Pair(40, turn=NOW_S - 1), *[Pair(37)] * 3]
    dear = BatchCost(per_batch_s=1e-2, per_token_s=1e-6, per_square_s=0.0)
    cheap = BatchCost(per_batch_s=0.0, per_token_s=1e-3, per_square_s=0.0)
    assert lengths(plan(pairs, cost=dear).batch) == [37, 37, 37, 40]
    assert lengths(plan(pairs, cost=cheap).batch) == [40]


def test_auctions_go_before_bulk_work_whatever_the_deadlines() -> None:
    bulk = Pair(deadline_s=NOW_S + 0.01, latest_start_s=NOW_S, priority=1)
    assert plan([bulk, Pair()]).batch == [Pair()]


def test_least_slack_goes_first_among_those_that_are_short_of_time() -> None:
    limits = replace(CPU, max_pairs=1)
    soon = Pair(latest_start_s=NOW_S + 0.001, turn=NOW_S + 1)
    later = Pair(latest_start_s=NOW_S + 0.002, turn=NOW_S - 1)
    assert plan([later, soon], limits).batch == [soon]


def test_who_is_short_of_time_goes_before_whose_turn_it_is() -> None:
    limits = replace(CPU, max_pairs=1)
    patient, pressed = Pair(turn=NOW_S - 9), Pair(latest_start_s=NOW_S, turn=NOW_S + 9)
    assert plan([patient, pressed], limits).batch == [pressed]


def test_a_tight_deadline_makes_the_batch_smaller_and_not_late() -> None:
    pressed = Pair(deadline_s=NOW_S + 1.3 * COST.batch_s(3, 20.0), latest_start_s=NOW_S)
    assert plan([*[Pair()] * 10, pressed]).batch.count(pressed) == 1
    assert len(plan([*[Pair()] * 10, pressed]).batch) == 3


def test_among_pairs_of_one_length_the_urgent_ones_come_along() -> None:
    limits = replace(CPU, max_pairs=3)
    pairs = [Pair(turn=NOW_S + i) for i in (5, 0, 4, 1, 3, 2)]
    assert sorted(p.turn - NOW_S for p in plan(pairs, limits).batch) == [0, 1, 2]


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


def test_of_two_models_plans_the_one_with_the_more_urgent_anchor_runs() -> None:
    def urgency(*pairs: Pair) -> BatchPlan:
        table = [
            [p.length_tokens, p.priority, p.turn, p.latest_start_s, p.deadline_s] for p in pairs
        ]
        return plan_batch(WaitingPairs(*np.array(table, np.float64).T), CPU, COST, NOW_S)

    nothing = urgency(Pair(deadline_s=NOW_S))
    bulk = urgency(Pair(priority=1, turn=NOW_S - 9, latest_start_s=NOW_S))
    later, sooner = urgency(Pair(turn=NOW_S + 1), Pair()), urgency(Pair(turn=NOW_S - 1))
    pressed = urgency(Pair(turn=NOW_S + 9, latest_start_s=NOW_S))
    ascending = [pressed, sooner, later, bulk, nothing]
    assert [most_urgent(ascending[first:]) for first in range(5)] == [0] * 5
    assert [most_urgent(ascending[first:][::-1]) for first in range(5)] == [4, 3, 2, 1, 0]
