"""Parts of a file of pairs in which a model may be better or worse than on the whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LENGTH_BINS = 4
SMALL_PAIRS = 100
SMALL_CLASS_PAIRS = 20
"""With fewer pairs, or fewer of either class, a slice is small: its AUC is uncertain by .05 and
more (standard error, Hanley and McNeil 1982, at an AUC of .85 with 20 of one class), and ten bins
have too few pairs for a calibration error."""


@dataclass(frozen=True, slots=True, eq=False)
class PairLengths:
    """How long the pairs are to a model's tokenizer, before anything is cut.

    Attributes:
        query_tokens: (n,) of the query, without special tokens.
        ad_tokens: (n,) of the ad's text.
        truncated: (n,) whether some of the pair is cut off.
    """

    query_tokens: NDArray[np.int64]
    ad_tokens: NDArray[np.int64]
    truncated: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """Some of the pairs.

    Attributes:
        group: What they were told apart by, "query length" for example.
        name: What these have in common: "3-5 tokens".
        chosen: (n,) which pairs are in it.
    """

    group: str
    name: str
    chosen: NDArray[np.bool_]


def slices_of(sources: Sequence[str], lengths: PairLengths | None) -> list[Slice]:
    """All slices that hold a pair; those of a group share out the pairs between them.

    Args:
        sources: (n,) collection or file of each pair.
        lengths: Of the pairs; None leaves out what needs a tokenizer.
    """
    made = []
    if lengths is not None:
        made += list(_by_length("query length", lengths.query_tokens))
        made += list(_by_length("ad length", lengths.ad_tokens))
        for name, chosen in (("whole", ~lengths.truncated), ("truncated", lengths.truncated)):
            made.append(Slice("truncation", name, chosen))
    names = np.array(sources, dtype=object)
    made += [Slice("source", name, names == name) for name in dict.fromkeys(sources)]
    return [part for part in made if part.chosen.any()]


def is_small(n_relevant: int, n_others: int) -> bool:
    """Whether so few pairs of each class say little."""
    return n_relevant + n_others < SMALL_PAIRS or min(n_relevant, n_others) < SMALL_CLASS_PAIRS


def _by_length(group: str, lengths: NDArray[np.int64]) -> Iterator[Slice]:
    """Up to four classes between the quartiles; equal lengths are always in the same one."""
    edges = np.unique(np.quantile(lengths, np.linspace(0, 1, LENGTH_BINS + 1)[1:], method="higher"))
    low = int(lengths.min())
    for edge in edges:
        high = int(edge)
        name = f"{low} tokens" if low == high else f"{low}-{high} tokens"
        yield Slice(group, name, (lengths >= low) & (lengths <= high))
        low = high + 1
