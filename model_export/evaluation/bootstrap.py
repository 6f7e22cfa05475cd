"""How sure a figure is: the same figure on files with other queries drawn from the same source.

Whole queries are drawn, never single pairs: the pairs of a query share their fate, so pairs drawn
one by one would look surer than they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Statistic = Callable[[Floats], Floats]
"""A figure of a file in which queries count several times or not at all.

Takes (r, q) how often each of q queries counts in each of r files; gives (r,) figures, NaN where
a file does not allow one. With ones it is the figure of the file as it is.
"""

CONFIDENCE = 0.95
MIN_QUERIES = 2
LEAST_DEFINED_SHARE = 0.95
"""Share of the resamples that must allow a figure; with fewer, those that do are a chosen few."""

CHUNK_CELLS = 4_000_000
"""Resamples x pairs that are computed at once: 32 MB an array."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure of the file and its 95 % interval; NaN where there is none."""

    value: float
    low: float = float("nan")
    high: float = float("nan")


@dataclass(frozen=True, slots=True)
class Compared:
    """The figures of one model.

    Attributes:
        figures: By name.
        differences: This model less the first one, by name, on the same resamples; empty for the
            first one. A figure that either lacks is left out.
    """

    figures: Mapping[str, Estimate]
    differences: Mapping[str, Estimate]


def query_resamples(
    n_queries: int, n_resamples: int, seed: int, chunk_resamples: int
) -> Iterator[Floats]:
    """How often each query counts, in chunks of (r, q) whole numbers; each row has the sum q.

    The numbers depend on the seed alone, not on the size of the chunks.
    """
    rng = np.random.default_rng(seed)
    even = np.full(n_queries, 1 / n_queries)
    for start in range(0, n_resamples, chunk_resamples):
        size = min(chunk_resamples, n_resamples - start)
        yield rng.multinomial(n_queries, even, size=size).astype(np.float64)


def compare(
    models: Sequence[Mapping[str, Statistic]],
    n_queries: int,
    n_pairs: int,
    n_resamples: int,
    seed: int,
) -> list[Compared]:
    """Figures, intervals and differences from the first model, all on the same resamples.

    Args:
        models: The statistics of each, by name.
        n_queries: Queries of the file; with fewer than two there are no intervals.
        n_pairs: Its pairs, by which the work is cut up.
        n_resamples: Files to draw; 0 draws none and gives no intervals.
        seed: Of the draws.

    Source: the percentile interval of Efron 1979, by cluster.
    """
    as_it_is = np.ones((1, n_queries))
    values = [{name: float(s(as_it_is)[0]) for name, s in model.items()} for model in models]
    drawn: list[dict[str, list[Floats]]] = [{name: [] for name in model} for model in models]
    if n_queries >= MIN_QUERIES:
        chunk = max(1, CHUNK_CELLS // max(n_pairs, 1))
        for counts in query_resamples(n_queries, n_resamples, seed, chunk):
            for model, parts in zip(models, drawn, strict=True):
                for name, statistic in model.items():
                    parts[name].append(statistic(counts))
    samples = [
        {name: np.concatenate(parts or [np.empty(0)]) for name, parts in model.items()}
        for model in drawn
    ]
    return [
        Compared(
            figures={name: _estimate(own[name], samples[index][name]) for name in own},
            differences={
                name: _estimate(
                    own[name] - values[0][name], samples[index][name] - samples[0][name]
                )
                for name in own
                if index and name in values[0]
            },
        )
        for index, own in enumerate(values)
    ]


def _estimate(value: float, samples: Floats) -> Estimate:
    defined = samples[~np.isnan(samples)]
    if np.isnan(value) or not len(defined) or len(defined) < LEAST_DEFINED_SHARE * len(samples):
        return Estimate(value)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(defined, (tail, 1 - tail))
    return Estimate(value, float(low), float(high))
