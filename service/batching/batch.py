"""One batch: while it runs, what came of it, and what is told of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from service.batching.generation import E, Generation
from service.batching.pair_job import PairJob
from service.batching.split_run import Outcome, Run, run_split
from service.domain import PairStatus

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchDone:
    """One batch has ended; the fields are what metrics and logs tell.

    Attributes:
        lengths_tokens: Of its pairs, special ones included.
        padded_tokens: Pairs x longest length: what was computed.
        predicted_s: Seconds that it was expected to take.
        inference_s: Seconds in the worker.
        failed: The model raised.
        splits: How often a part of it was run again in halves, for want of memory.
    """

    lengths_tokens: Sequence[int]
    padded_tokens: int
    predicted_s: float
    inference_s: float
    failed: bool
    splits: int = 0

    @property
    def n_pairs(self) -> int:
        """Pairs in the batch."""
        return len(self.lengths_tokens)

    @property
    def tokens(self) -> int:
        """All of theirs."""
        return sum(self.lengths_tokens)


@dataclass(slots=True, eq=False)
class Batch(Generic[E]):
    """A batch in a worker; its jobs are all of one generation.

    Attributes:
        jobs: At least one.
        padded_tokens: Pairs x longest length.
        started_s: When it was planned; monotonic seconds.
        predicted_s: Seconds that it was expected to take then.
        thread_id: The system's, of the thread that runs it; None before it does.
    """

    jobs: Sequence[PairJob[E]]
    padded_tokens: int
    started_s: float
    predicted_s: float
    thread_id: int | None = None

    @property
    def generation(self) -> Generation[E]:
        """The model that runs it."""
        return self.jobs[0].generation

    def run(self) -> Run:
        """The model's logits, or what it raised."""
        self.thread_id = threading.get_native_id()
        return run_split(self.generation.model, [job.encoded for job in self.jobs])

    def settle(self, outcome: Outcome) -> bool:
        """On the event loop: tell everyone what became of their pairs.

        Returns:
            Whether the model gave logits.
        """
        logits = _checked(outcome, len(self.jobs))
        if logits is None:
            for job in self.jobs:
                job.settle(PairStatus.FAILED, None, self.started_s)
            return False
        finite = np.isfinite(logits.sum(axis=1))  # inf and NaN spread to a sum
        for row, job in enumerate(self.jobs):
            if finite[row]:
                job.settle(PairStatus.OK, logits[row], self.started_s)
            else:
                job.settle(PairStatus.FAILED, None, self.started_s)
        return True

    def done(self, ended_s: float, failed: bool, splits: int = 0) -> BatchDone:
        """What is told of it after its end."""
        return BatchDone(
            lengths_tokens=[job.encoded.length_tokens for job in self.jobs],
            padded_tokens=self.padded_tokens,
            predicted_s=self.predicted_s,
            inference_s=ended_s - self.started_s,
            failed=failed,
            splits=splits,
        )


def _checked(outcome: Outcome, n_pairs: int) -> NDArray[np.float32] | None:
    """The logits of a finished run; None, with the reason logged, where there are none."""
    if isinstance(outcome, BaseException):
        logger.error("batch of %d pairs failed", n_pairs, exc_info=outcome)
        return None
    if len(outcome) != n_pairs:
        logger.error("batch of %d pairs failed: the model returned %d rows", n_pairs, len(outcome))
        return None
    return outcome
