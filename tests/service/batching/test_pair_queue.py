from __future__ import annotations

import numpy as np
import pytest

from service.batching.pair_queue import PairQueue, PendingRequest
from service.batching.planner import BatchLimits
from service.domain import PairStatus, Priority
from service.errors import QueueFull
from tests.fakes import FakePair

pytestmark = pytest.mark.anyio

LIMITS = BatchLimits(max_pairs=4, max_padded_tokens=1000, max_padding_ratio=0.1)
NOW_S = 10.0
LOGIT = np.zeros(1, dtype=np.float32)


def request(n_pairs: int, deadline_s: float = 99.0) -> PendingRequest:
    return PendingRequest(n_pairs, deadline_s, Priority.AUCTION, NOW_S)


def pairs(n_pairs: int, length_tokens: int = 20) -> list[FakePair]:
    return [FakePair(length_tokens) for _ in range(n_pairs)]


async def test_a_request_is_admitted_whole_or_not_at_all() -> None:
    queue: PairQueue[FakePair] = PairQueue(LIMITS, max_waiting_pairs=5)
    queue.admit(request(3), pairs(3))
    with pytest.raises(QueueFull, match="3 of at most 5"):
        queue.admit(request(3), pairs(3))
    assert len(queue) == 3
    queue.admit(request(2), pairs(2))
    assert len(queue) == 5


async def test_a_newcomer_is_served_before_the_rest_of_a_large_request() -> None:
    queue: PairQueue[FakePair] = PairQueue(LIMITS, max_waiting_pairs=1000)
    large, small = request(100), request(1, deadline_s=100.0)
    queue.admit(large, pairs(100))
    queue.take(NOW_S, 4)
    queue.admit(small, pairs(1, length_tokens=90))
    assert [pair.request for pair in queue.take(NOW_S, 4).batch] == [small]


async def test_newcomers_do_not_starve_a_large_request() -> None:
    queue: PairQueue[FakePair] = PairQueue(LIMITS, max_waiting_pairs=1000)
    large = request(20)
    queue.admit(large, pairs(20, length_tokens=60))
    rounds = 0
    while any(pair.request is large for pair in queue._waiting):
        queue.admit(request(4), pairs(4))  # as much as a batch takes: always more work
        queue.take(NOW_S, 4)
        rounds += 1
        assert rounds <= 25  # five batches of its own, every fourth or fifth turn


async def test_a_closed_request_leaves_the_queue_without_a_batch() -> None:
    queue: PairQueue[FakePair] = PairQueue(LIMITS, max_waiting_pairs=10)
    gone, here = request(2), request(2)
    queue.admit(gone, pairs(2))
    queue.admit(here, pairs(2))
    gone.close()
    plan = queue.take(NOW_S, 4)
    assert [pair.request for pair in plan.batch] == [here, here]
    assert len(plan.abandoned) == 2
    assert len(queue) == 0


async def test_pairs_that_nobody_waits_for_hold_no_place_in_the_queue() -> None:
    queue: PairQueue[FakePair] = PairQueue(LIMITS, max_waiting_pairs=5)
    gone = request(5)
    queue.admit(gone, pairs(5))
    gone.close()
    queue.admit(request(5), pairs(5))
    assert len(queue) == 5


async def test_a_batch_is_never_larger_than_asked_or_than_the_limit() -> None:
    queue: PairQueue[FakePair] = PairQueue(LIMITS, max_waiting_pairs=100)
    queue.admit(request(50), pairs(50))
    assert len(queue.take(NOW_S, 3).batch) == 3
    assert len(queue.take(NOW_S, 30).batch) == 4


async def test_the_future_is_done_with_the_last_pair() -> None:
    pending = request(2)
    pending.settle(1, PairStatus.OK, LOGIT)
    assert not pending.done.done()
    pending.settle(0, PairStatus.FAILED, None)
    assert pending.done.done()
    assert pending.statuses == [PairStatus.FAILED, PairStatus.OK]


async def test_outcomes_that_come_after_the_close_are_dropped() -> None:
    pending = request(2)
    pending.settle(0, PairStatus.OK, LOGIT)
    pending.close()
    pending.settle(1, PairStatus.OK, LOGIT)
    assert pending.statuses == [PairStatus.OK, PairStatus.DEADLINE]
    assert pending.logits[1] is None
