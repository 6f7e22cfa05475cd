from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from service.batching.cost_model import BatchCost
from service.batching.generation import Generation
from service.batching.pair_job import TAKEN, PairJob, PendingRequest
from service.batching.pair_queue import PairQueue
from service.batching.planner import BatchLimits
from service.domain import Priority
from service.errors import DeadlineUnreachable, QueueFull
from tests.fakes import FakeModel, FakePair, generation

pytestmark = pytest.mark.anyio

LIMITS = BatchLimits(max_pairs=4, max_padded_tokens=1000, max_padding_ratio=0.1)
TENTH_EACH = BatchCost(per_batch_s=0.0, per_token_s=0.005, per_square_s=0.0)  # of 20 tokens
MODEL = generation(FakeModel(), TENTH_EACH)
NOW_S = 10.0


def a_queue(max_queue_s: float = 1e6) -> PairQueue[FakePair]:
    return PairQueue(LIMITS, workers=1, max_queue_s=max_queue_s)


def add(
    queue: PairQueue[FakePair],
    n_pairs: int,
    *,
    length_tokens: int = 20,
    deadline_s: float = 9999.0,
    priority: Priority = Priority.AUCTION,
    shared: Sequence[PairJob[FakePair]] = (),
    of: Generation[FakePair] = MODEL,
) -> tuple[PendingRequest, list[PairJob[FakePair]]]:
    request = PendingRequest(n_pairs + len(shared), 1, deadline_s, priority)
    new: list[PairJob[FakePair]] = [PairJob(FakePair(length_tokens), of) for _ in range(n_pairs)]
    for index, job in enumerate([*new, *shared]):
        job.subscribe(request, index)
    queue.add(request, [*new, *shared])
    return request, new


def take(
    queue: PairQueue[FakePair], now_s: float = NOW_S
) -> tuple[list[PairJob[FakePair]], list[PairJob[FakePair]]]:
    return queue.take(now_s, LIMITS.max_pairs)


async def test_the_room_is_counted_in_predicted_seconds() -> None:
    queue = a_queue(max_queue_s=0.55)
    add(queue, 3)
    assert queue.wait_s() == pytest.approx(0.3)
    request = PendingRequest(3, 1, 9999.0, Priority.AUCTION)
    queue.check_room(request, MODEL, [20, 20], busy_s=0.0, caution=1.0, now_s=NOW_S)
    with pytest.raises(QueueFull, match="600 ms of work, the limit is 550 ms") as refused:
        queue.check_room(request, MODEL, [20, 20, 20], busy_s=0.0, caution=1.0, now_s=NOW_S)
    assert refused.value.retry_after_s == pytest.approx(0.05)


async def test_how_many_pairs_a_batch_can_have_goes_by_the_mean_length() -> None:
    queue = PairQueue[FakePair](BatchLimits(32, 512, 0.1), workers=1, max_queue_s=1e6)
    add(queue, 3, length_tokens=20)
    assert queue.full_pairs() == 25
    add(queue, 1, length_tokens=100, of=generation(FakeModel(), TENTH_EACH))
    assert queue.full_pairs() == 512 // 40


async def test_a_request_that_would_be_late_hears_how_late() -> None:
    queue = a_queue()
    add(queue, 3, deadline_s=NOW_S + 1)
    request = PendingRequest(2, 1, NOW_S + 0.4, Priority.AUCTION)
    queue.check_room(request, MODEL, [20], busy_s=0.0, caution=1.0, now_s=NOW_S)
    with pytest.raises(DeadlineUnreachable, match="take 300 ms or more now; with 200 ms left"):
        queue.check_room(
            PendingRequest(2, 1, NOW_S + 0.2, Priority.AUCTION),
            MODEL,
            [20, 20],
            busy_s=0.1,
            caution=1.0,
            now_s=NOW_S,
        )


@pytest.mark.parametrize("n_large", [1, 4])
async def test_a_newcomer_does_not_wait_for_large_requests(n_large: int) -> None:
    queue = a_queue()
    for _ in range(n_large):
        add(queue, 100)
    for _ in range(n_large):
        take(queue)  # each has begun
    for _ in range(5):
        take(queue)
        _, small = add(queue, 1, length_tokens=5)
        batch, _ = take(queue)
        assert batch == small


async def test_small_requests_are_served_one_after_the_other() -> None:
    queue = a_queue()
    _, first = add(queue, 6)
    add(queue, 6)
    batch, _ = take(queue)
    assert {id(job) for job in batch} <= {id(job) for job in first}
    batch, _ = take(queue)
    assert {id(job) for job in first} - {id(job) for job in batch} != {id(job) for job in first}
    assert all(job.row == TAKEN for job in first)


async def test_the_longest_pairs_of_a_request_start_first() -> None:
    queue = a_queue()
    _, middle = add(queue, 3, length_tokens=40)
    short = [PairJob(FakePair(10 * i), MODEL) for i in (1, 9, 3, 7)]
    request = PendingRequest(4, 1, 9999.0, Priority.AUCTION)
    for index, job in enumerate(short):
        job.subscribe(request, index)
    queue.add(request, short)
    assert take(queue)[0] == middle
    served = [take(queue)[0][0].encoded.length_tokens for _ in short]
    assert served == [90, 70, 30, 10]


async def test_large_requests_share_the_machine() -> None:
    queue = a_queue()
    _, first = add(queue, 40, length_tokens=20)
    _, second = add(queue, 40, length_tokens=60)  # too long to share batches with the first
    for _ in range(8):
        take(queue)
    served = [sum(job.row == TAKEN for job in jobs) for jobs in (first, second)]
    assert min(served) >= 4


async def test_newcomers_do_not_starve_a_large_request() -> None:
    queue = a_queue()
    _, large = add(queue, 20, length_tokens=60)
    now_s, rounds = NOW_S, 0
    while any(job.row != TAKEN for job in large):
        add(queue, 4)  # as much as a batch takes: always more work
        batch, _ = take(queue, now_s)
        now_s += sum(TENTH_EACH.batch_s(1, job.encoded.length_tokens) for job in batch)
        rounds += 1
        assert rounds <= 60


async def test_what_nobody_waits_for_leaves_at_once() -> None:
    queue = a_queue()
    gone, jobs = add(queue, 2)
    _, others = add(queue, 2)
    gone.close()
    assert {id(job) for job in queue.release(jobs)} == {id(job) for job in jobs}
    assert len(queue) == 2
    batch, _ = take(queue)
    assert {id(job) for job in batch} == {id(job) for job in others}


async def test_a_pair_that_somebody_else_waits_for_too_stays() -> None:
    queue = a_queue()
    gone, jobs = add(queue, 1)
    add(queue, 0, shared=jobs)
    gone.close()
    queue.release(jobs)
    assert len(queue) == 1


async def test_a_shared_pair_is_as_urgent_as_the_most_urgent_of_its_requests() -> None:
    queue = a_queue()
    _, bulk = add(queue, 1, priority=Priority.BATCH)
    add(queue, 8)
    add(queue, 0, shared=bulk, deadline_s=NOW_S + 0.2)
    batch, _ = take(queue)
    assert bulk[0] in batch


async def test_a_shared_pair_is_no_more_urgent_than_its_requests_that_still_wait() -> None:
    queue = a_queue()
    _, bulk = add(queue, 1, priority=Priority.BATCH)
    auction, _ = add(queue, 0, shared=bulk, deadline_s=NOW_S + 0.2)
    _, other = add(queue, 1, length_tokens=60)
    auction.close()
    assert queue.release(bulk) == []
    batch, _ = take(queue)
    assert batch == other


async def test_pairs_that_are_brought_forward_from_bulk_work_count_as_new_work() -> None:
    queue = a_queue()
    _, bulk = add(queue, 3, priority=Priority.BATCH)
    auction = PendingRequest(3, 1, 9999.0, Priority.AUCTION)
    more_bulk = PendingRequest(3, 1, 9999.0, Priority.BATCH)
    sooner = PendingRequest(3, 1, NOW_S + 1, Priority.BATCH)
    assert queue.new_work(auction, bulk) == [20, 20, 20]
    assert queue.new_work(more_bulk, bulk) == []
    assert queue.new_work(sooner, bulk) == [20, 20, 20]


async def test_a_shared_pair_is_kept_until_the_last_of_its_deadlines() -> None:
    queue = a_queue()
    _, jobs = add(queue, 1, deadline_s=NOW_S + 0.2)
    add(queue, 0, shared=jobs, deadline_s=NOW_S + 5)
    batch, doomed = take(queue, NOW_S + 1)
    assert (batch, doomed) == (jobs, [])


async def test_what_cannot_be_ready_in_time_leaves_without_a_batch() -> None:
    queue = a_queue()
    _, jobs = add(queue, 3, deadline_s=NOW_S + 0.05)
    batch, doomed = take(queue)
    assert batch == []
    assert {id(job) for job in doomed} == {id(job) for job in jobs}
    assert len(queue) == 0


async def test_rows_stay_right_while_pairs_come_and_go_in_any_order() -> None:
    rng = random.Random(3)  # noqa: S311  # a fixed sequence is wanted
    queue, waiting = a_queue(), {}
    for _ in range(300):
        if rng.random() < 0.5:
            _, jobs = add(queue, rng.randrange(1, 12), length_tokens=rng.randrange(5, 60))
            waiting.update({id(job): job for job in jobs})
        else:
            for job in (*take(queue)[0],):
                assert waiting.pop(id(job)).row == TAKEN
        assert len(queue) == len(waiting)
        if queue.has(MODEL):
            table = queue._tables[MODEL]
            lengths = table.columns().length_tokens.tolist()
            assert lengths == [job.encoded.length_tokens for job in table.all_jobs()]
            assert [job.row for job in table.all_jobs()] == list(range(len(queue)))
            assert {id(job) for job in table.all_jobs()} == set(waiting)


async def test_clearing_returns_all_that_waits() -> None:
    queue = a_queue()
    request, jobs = add(queue, 3)
    assert {id(job) for job in queue.clear()} == {id(job) for job in jobs}
    assert len(queue) == 0
    assert not request.closed


async def test_a_request_that_only_shares_leaves_nothing_behind() -> None:
    queue = a_queue()
    _, jobs = add(queue, 2)
    add(queue, 0, shared=jobs)
    assert len(queue._waiting_of) == 1
    take(queue)
    add(queue, 0, shared=jobs)
    assert not queue._waiting_of
    assert not queue._owner
