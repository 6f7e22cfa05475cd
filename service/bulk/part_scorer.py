"""Scores the rows of one part: each different pair once, in micro-batches of like length."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from service.bulk.pair_rows import parse_pair
from service.bulk.table import InputRow
from service.scoring.bulk import Logits, length_batches
from service.scoring.bundle import Bundle
from service.scoring.encoding import EncodedPair, TextIds

TEXTS_A_CALL = 64  # so many hold few unseen words, which the encoder then remembers


@dataclass(slots=True)
class StartedPart:
    """A part whose pairs wait for their turn or run.

    Attributes:
        pair_of_row: Index of each row's pair; None where the row is none.
        rejected: Why, by index of the row.
        truncated: Of each pair.
        batches: Indices of pairs.
        running: Of each batch.
    """

    pair_of_row: list[int | None]
    rejected: dict[int, str]
    truncated: list[bool] = field(default_factory=list)
    batches: list[list[int]] = field(default_factory=list)
    running: list[Future[Logits]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PartScores:
    """What became of the rows of a part; each has a score or a reason why not.

    Attributes:
        indices: Of the rows that have a score.
        scores: Of these.
        truncated: Likewise.
        rejected: Why not, by index of the row.
        n_pairs: Different pairs that were computed.
    """

    indices: list[int]
    scores: list[float]
    truncated: list[bool]
    rejected: dict[int, str]
    n_pairs: int


class PartScorer:
    """Scores parts on threads of its own; the next may be started while one is running.

    One-thread runs, as many at once as there are threads: on a CPU nothing is faster.
    """

    def __init__(self, bundle: Bundle, threads: int, limit_bytes: int) -> None:
        """Start the threads.

        Args:
            bundle: The model.
            threads: Runs at once.
            limit_bytes: The most that the texts of a pair may have.
        """
        self._bundle = bundle
        self._limit_bytes = limit_bytes
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="bulk")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._threads.shutdown(cancel_futures=True)

    @property
    def model_version(self) -> str:
        """Of the model that scores."""
        return self._bundle.manifest.model.version

    def start(self, rows: Sequence[InputRow]) -> StartedPart:
        """Encode the pairs of the rows and line up their batches."""
        pairs: dict[tuple[str, str], int] = {}  # query and the ad as the model reads it
        part = StartedPart([None] * len(rows), {})
        for index, row in enumerate(rows):
            if row.fields is None:
                part.rejected[index] = row.fault
                continue
            try:
                query, ad = parse_pair(row.fields, self._limit_bytes)
            except ValueError as error:
                part.rejected[index] = str(error)
                continue
            key = query, self._bundle.ad_text(ad)
            part.pair_of_row[index] = pairs.setdefault(key, len(pairs))
        encoded = self._encode(list(pairs))
        part.truncated = [pair.truncated for pair in encoded]
        part.batches = length_batches(encoded)
        part.running = [
            self._threads.submit(self._bundle.model.logits, [encoded[index] for index in batch])
            for batch in part.batches
        ]
        return part

    def finish(
        self, part: StartedPart, on_progress: Callable[[int], None] = lambda _: None
    ) -> PartScores:
        """Wait for the scores of a part.

        Args:
            part: That was started.
            on_progress: Told how many more rows are done.

        Raises:
            InferenceFailed: The runtime failed on a batch.
        """
        n_rows = [0] * len(part.truncated)  # of each pair
        for pair in part.pair_of_row:
            if pair is not None:
                n_rows[pair] += 1
        on_progress(len(part.rejected))
        logits = np.empty((len(part.truncated), self._bundle.n_logits), np.float32)
        for batch, running in zip(part.batches, part.running, strict=True):
            logits[batch] = running.result()
            on_progress(sum(n_rows[pair] for pair in batch))
        return _settled(part, self._bundle.to_scores(logits))

    def _encode(self, pairs: Sequence[tuple[str, str]]) -> list[EncodedPair]:
        texts = list(dict.fromkeys(itertools.chain.from_iterable(pairs)))
        ids: dict[str, TextIds] = {}
        for start in range(0, len(texts), TEXTS_A_CALL):
            some = texts[start : start + TEXTS_A_CALL]
            ids.update(zip(some, self._bundle.encoder.tokenize(some), strict=True))
        return [self._bundle.join(ids[query], ids[ad]) for query, ad in pairs]


def _settled(part: StartedPart, scores: NDArray[np.float64]) -> PartScores:
    done = PartScores([], [], [], dict(part.rejected), len(scores))
    for index, pair in enumerate(part.pair_of_row):
        if pair is None:
            continue
        score = float(scores[pair])
        if np.isfinite(score):
            done.indices.append(index)
            done.scores.append(score)
            done.truncated.append(part.truncated[pair])
        else:
            done.rejected[index] = "failed: the model gave no finite score"
    return done
