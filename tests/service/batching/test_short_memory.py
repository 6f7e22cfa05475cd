"""Batches of a service that is short of memory: smaller for a while, then full again."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from service.batching.batch import BatchDone
from service.batching.batcher import Batcher
from service.batching.cost_model import BatchCost
from service.batching.pair_job import PairJob, PendingRequest
from service.batching.planner import BatchLimits
from service.batching.token_budget import RECOVER_S
from service.domain import PairStatus, Priority
from service.errors import OutOfMemory
from tests.fakes import FakeClock, FakeModel, FakePair, generation, until

pytestmark = pytest.mark.anyio

LIMITS = BatchLimits(max_pairs=8, max_padded_tokens=80, max_padding_ratio=0.1)
MS_A_TOKEN = BatchCost(per_batch_s=0.01, per_token_s=1e-3, per_square_s=0.0)
FAR_S = 1e6


class SmallMemory(FakeModel):
    fits_tokens = 80

    def logits(self, pairs: Sequence[FakePair]) -> NDArray[np.float32]:
        given = super().logits(pairs)
        if sum(pair.length_tokens for pair in pairs) > self.fits_tokens:
            raise OutOfMemory("too much")
        return given


async def test_batches_are_smaller_while_memory_is_short_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, model, done = FakeClock(), SmallMemory(), list[BatchDone]()
    of_model = generation(model, MS_A_TOKEN)
    batcher: Batcher[FakePair] = Batcher(
        LIMITS, workers=1, max_queue_s=FAR_S, clock=clock, on_batch=done.append
    )

    async def sizes_of_batches() -> list[int]:
        """Of a request of 16 pairs of 10 tokens; the runs that failed and their halves too."""
        model.batches.clear()
        request = PendingRequest(16, 1, FAR_S, Priority.AUCTION)
        jobs = [PairJob(FakePair(10, float(place)), of_model) for place in range(16)]
        for index, job in enumerate(jobs):
            job.subscribe(request, index)
        batcher.submit(request, jobs)
        await request.done
        await until(lambda: batcher.running_batches == 0)
        assert request.statuses == [PairStatus.OK] * 16
        assert request.logits[:, 0].tolist() == list(range(16))
        return [len(batch) for batch in model.batches]

    assert await sizes_of_batches() == [8, 8]
    cost = of_model.cost
    model.fits_tokens = 40
    with caplog.at_level(logging.INFO):
        assert await sizes_of_batches() == [8, 4, 4, 4, 4]
        assert batcher.budget_tokens == 40
        assert await sizes_of_batches() == [4] * 4
        assert [batch.splits for batch in done[2:]] == [1] + [0] * 6
        assert not any(batch.failed for batch in done)
        clock.advance(RECOVER_S)
        assert await sizes_of_batches() == [8, 4, 4, 4, 4], "memory is still short"
        model.fits_tokens = 80
        clock.advance(RECOVER_S)
        assert batcher.budget_tokens == 80
        assert await sizes_of_batches() == [8, 8]
        clock.advance(RECOVER_S)
        assert await sizes_of_batches() == [8, 8]
    said = [record.message for record in caplog.records]
    assert said == ["out of memory; batches are smaller", "memory suffices again"]
    assert of_model.cost == cost, "with a fake clock nothing takes time"
    await batcher.drain(timeout_s=30)
