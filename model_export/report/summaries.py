"""What the report computes from scores: bins, intervals, histograms, which points to keep."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from model_export.metrics import ReliabilityBin, reliability_bins

Z_95 = 1.959964  # two-sided 95 % of the normal distribution

MAX_POINTS = 2_000  # more would make the page slow, and a scatter of dots no clearer
N_WORST_KEPT = 500

# Upper ends of the spread's classes after "exactly 0", which is a class of its own.
SPREAD_DECADES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


def wilson_interval(share: float, n: int, z: float = Z_95) -> tuple[float, float]:
    """Interval of a proportion that behaves at 0, at 1 and for few pairs.

    Source: Wilson 1927, "Probable inference, the law of succession, and statistical inference".
    """
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # Rounding must not push the proportion out of its own interval.
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def reliability_points(labels: ArrayLike, scores: ArrayLike) -> list[dict[str, Any]]:
    """The bins of the calibration error with intervals; those of one and the same score are one.

    Joining them leaves the error as it is, and many equal scores are one point, not ten.

    Args:
        labels: (n,) relevance in 0-1.
        scores: (n,) in 0-1.

    Returns:
        By rising score: `n_pairs`, `mean_score`, `share_relevant`, and `low` and `high` of its
        95 % Wilson interval.
    """
    joined: list[ReliabilityBin] = []
    for part in reliability_bins(labels, scores):
        if joined and math.isclose(joined[-1].mean_score, part.mean_score, abs_tol=1e-12):
            part = _join(joined.pop(), part)  # noqa: PLW2901  # it takes the place of both
        joined.append(part)
    points = []
    for part in joined:
        share = min(max(part.observed_share, 0.0), 1.0)  # a mean of ones can round to above one
        low, high = wilson_interval(share, part.count)
        points.append({"n_pairs": part.count, "mean_score": part.mean_score,
                       "share_relevant": share, "low": low, "high": high})  # fmt: skip
    return points


def _join(left: ReliabilityBin, right: ReliabilityBin) -> ReliabilityBin:
    count = left.count + right.count
    share = (left.observed_share * left.count + right.observed_share * right.count) / count
    return ReliabilityBin(left.mean_score, share, count)


def counts_between(values: ArrayLike, edges: ArrayLike) -> list[int]:
    """How many values lie in each bin; those outside count in the bin at that end."""
    limits = np.asarray(edges, dtype=np.float64)
    inside = np.clip(np.asarray(values, dtype=np.float64), limits[0], limits[-1])
    return [int(count) for count in np.histogram(inside, bins=limits)[0]]


def length_edges(limit_tokens: int, at_most: int = 32) -> list[int]:
    """Bin edges of lengths 1 to the limit: whole tokens, equally wide."""
    width = math.ceil(limit_tokens / at_most)
    return list(range(1, limit_tokens + 1 + width, width))


def spread_classes(spread: ArrayLike) -> list[dict[str, Any]]:
    """How many pairs have a spread of exactly zero, and how many in each decade above."""
    values = np.asarray(spread, dtype=np.float64)
    classes = [{"class": "exactly 0", "n_pairs": int((values == 0).sum())}]
    low = 0.0
    for high in (*SPREAD_DECADES, math.inf):
        inside = int(((values > low if low == 0 else values >= low) & (values < high)).sum())
        name = f"< {high:g}" if low == 0 else f"{low:g} to {high:g}"
        classes.append({"class": f"≥ {low:g}" if high == math.inf else name, "n_pairs": inside})
        low = high
    return classes


def points_to_show(
    reference: NDArray[np.float64], change: NDArray[np.float64], limit: int = MAX_POINTS
) -> NDArray[np.int64]:
    """Which pairs to draw: all, or the worst quarter of `limit` and the rest evenly by score.

    Args:
        reference: (n,) scores.
        change: (n,) how far each moved.
        limit: At most this many.

    Returns:
        Indices, the most changed first; the same for the same input.
    """
    worst_first = np.argsort(-np.abs(change), kind="stable")
    if len(reference) <= limit:
        return worst_first
    n_worst = min(N_WORST_KEPT, limit // 4)
    worst, rest = worst_first[:n_worst], worst_first[n_worst:]
    by_score = rest[np.argsort(reference[rest], kind="stable")]
    evenly = np.linspace(0, len(by_score) - 1, limit - n_worst).round().astype(np.int64)
    kept = set(by_score[evenly].tolist())
    return np.concatenate([worst, [index for index in rest if int(index) in kept]]).astype(np.int64)
