"""Pairs on their way through the batches, by key: each is computed once, whoever asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from service.batching.batcher import Batcher
from service.batching.pair_job import PairJob, PendingRequest
from service.caching.fixed_cache import CacheCounts
from service.errors import ServiceError
from service.pair_text import P
from service.score_answer import Prepared


class PairsInFlight(Generic[P]):
    """What one scorer has submitted and not yet got back.

    Mutable state: the jobs by key.
    """

    def __init__(self, batcher: Batcher[P], counts: CacheCounts) -> None:
        """Nothing is in flight yet.

        Args:
            batcher: Takes pairs.
            counts: Told of each pair that needs no computation of its own.
        """
        self._batcher = batcher
        self._counts = counts
        self._jobs: dict[bytes, PairJob[P]] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def job(self, key: bytes) -> PairJob[P] | None:
        """That of a pair; None where it is not in flight."""
        return self._jobs.get(key)

    def share(self, prepared: Prepared) -> dict[bytes, list[int]]:
        """Have the missing pairs that somebody else has asked for already, at once.

        Returns:
            The indices of all other missing pairs by key.
        """
        shared: dict[bytes, PairJob[P]] = {}
        new: dict[bytes, list[int]] = {}
        counts = self._counts
        for index in prepared.missing:
            key = prepared.keys[index]
            job = self._jobs.get(key)
            if job is None:
                counts.joined += key in new
                new.setdefault(key, []).append(index)
            else:
                shared[key] = job
                counts.joined += 1
                subscribe(prepared, [index], job)
        if shared:
            self._batcher.submit(prepared.pending, list(shared.values()))
        return new

    def submit(self, pending: PendingRequest, jobs: dict[bytes, PairJob[P]]) -> None:
        """Have a request's new pairs computed, and those that came into flight meanwhile.

        Raises:
            ServiceError: As `Batcher.submit` does; what nobody else wants is in flight no more.
        """
        unsettled = [job for job in jobs.values() if not job.settled]
        if not unsettled:
            return
        self._jobs.update(jobs)
        try:
            self._batcher.submit(pending, unsettled)
        except ServiceError:
            pending.close()
            for key, job in jobs.items():
                if job.n_wanted == 0:
                    self._jobs.pop(key, None)
            raise

    def landed(self, key: bytes) -> None:
        """A pair has an outcome, or nobody waits for it any more."""
        self._jobs.pop(key, None)


def subscribe(prepared: Prepared, indices: Sequence[int], job: PairJob[P]) -> None:
    """Have a job settle some pairs of a request, which are the same pair."""
    for index in indices:
        job.subscribe(prepared.pending, index)
        prepared.truncated[index] = job.encoded.truncated
