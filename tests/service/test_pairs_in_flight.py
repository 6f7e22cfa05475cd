from __future__ import annotations

import pytest

from service.batching.pair_job import Logits, PairJob, PendingRequest
from service.caching.fixed_cache import CacheCounts
from service.domain import PairStatus, Priority
from service.errors import QueueFull
from service.pairs_in_flight import PairsInFlight, subscribe
from service.score_answer import Prepared
from tests.fakes import FakePair
from tests.service.scorer_bench import Bench, query

pytestmark = pytest.mark.anyio


def asking(*texts: str) -> Prepared:
    """A request for pairs of which the cache knows none; a pair's key is its text."""
    n = len(texts)
    pending = PendingRequest(n, 1, 1e6, Priority.AUCTION)
    keys = [text.encode() for text in texts]
    return Prepared(query(*texts), list(texts), keys, pending, [False] * n, list(range(n)), 0.0)


def job(flight: PairsInFlight[FakePair], bench: Bench, key: bytes) -> PairJob[FakePair]:
    def landed(_: Logits | None) -> None:
        flight.landed(key)

    return PairJob(FakePair(10, float(key), truncated=True), bench.scorer._generation, landed)


def submit(flight: PairsInFlight[FakePair], bench: Bench, prepared: Prepared) -> None:
    """What a scorer does with the pairs that are new."""
    new = flight.share(prepared)
    jobs = {key: job(flight, bench, key) for key in new}
    for key, indices in new.items():
        subscribe(prepared, indices, jobs[key])
    flight.submit(prepared.pending, jobs)


async def test_a_pair_that_is_asked_for_twice_runs_once_and_tells_both(bench: Bench) -> None:
    counts = CacheCounts()
    flight = PairsInFlight(bench.batcher, counts)
    bench.model.hold()
    first, second = asking("1", "2", "1"), asking("3", "2")
    submit(flight, bench, first)
    submit(flight, bench, second)
    assert len(flight) == 3
    assert counts.joined == 2  # the pair that stands twice in the first, and the one in both
    bench.model.release()
    await first.pending.done
    await second.pending.done
    assert first.pending.logits[:, 0].tolist() == [1, 2, 1]
    assert second.pending.logits[:, 0].tolist() == [3, 2]
    assert sum(map(len, bench.model.batches)) == 3
    assert first.truncated == [True] * 3
    assert len(flight) == 0


async def test_a_request_that_only_shares_has_no_new_pairs(bench: Bench) -> None:
    flight = PairsInFlight(bench.batcher, CacheCounts())
    bench.model.hold()
    submit(flight, bench, asking("1"))
    other = asking("1")
    assert flight.share(other) == {}
    bench.model.release()
    await other.pending.done
    assert other.pending.statuses == [PairStatus.OK]


async def test_of_a_request_that_is_refused_nothing_stays_in_flight(bench: Bench) -> None:
    flight = PairsInFlight(bench.batcher, CacheCounts())
    bench.model.hold()
    submit(flight, bench, asking("1"))
    refused = asking("1", *map(str, range(2, 500)))
    with pytest.raises(QueueFull):
        submit(flight, bench, refused)
    assert refused.pending.closed
    assert len(flight) == 1
    assert flight.job(b"1") is not None


async def test_a_pair_that_came_into_flight_meanwhile_stays_there_when_a_request_is_refused(
    bench: Bench,
) -> None:
    flight = PairsInFlight(bench.batcher, CacheCounts())
    bench.model.hold()
    refused = asking(*map(str, range(1, 500)))
    jobs = {key: job(flight, bench, key) for key in flight.share(refused)}
    submit(flight, bench, asking("1"))
    common = flight.job(b"1")
    assert common is not None
    jobs[b"1"] = common
    for index, key in enumerate(refused.keys):
        subscribe(refused, [index], jobs[key])
    with pytest.raises(QueueFull):
        flight.submit(refused.pending, jobs)
    assert len(flight) == 1
    assert flight.job(b"1") is common
