"""What is doubtful in a file of pairs and yet no reason to refuse it, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from model_export.column_names import COLUMNS, nearest

if TYPE_CHECKING:
    from model_export.pairs import LabelledPair

SHOWN = 3  # contradictions that a sentence names


def ignored_columns(names: Iterable[str]) -> str | None:
    """Which columns nothing reads, and which of them may be misspelt; None where all are read."""
    ignored = sorted(set(names) - set(COLUMNS))
    if not ignored:
        return None
    return f"columns that nothing reads: {', '.join(map(_with_suggestion, ignored))}"


def contradictions(pairs: Sequence[LabelledPair], lines: Sequence[int]) -> str | None:
    """How many pairs say of one query and ad that it is relevant and that it is not; None: none.

    Args:
        pairs: Of a file.
        lines: (n,) the line of each.
    """
    seen: dict[tuple[str, ...], dict[bool, int]] = {}
    for pair, line in zip(pairs, lines, strict=True):
        seen.setdefault(_texts(pair), {}).setdefault(pair.label > 0.5, line)
    both = [sorted(found.values()) for found in seen.values() if len(found) == 2]  # kinds
    if not both:
        return None
    shown = ", ".join(f"{first} and {second}" for first, second in both[:SHOWN])
    more = ", .." if len(both) > SHOWN else ""
    return (
        f"pairs of the same query and ad, relevant in one row and irrelevant in another: "
        f"{len(both)}, as in lines {shown}{more}"
    )


def contradictions_between(files: Mapping[str, Sequence[LabelledPair]]) -> str | None:
    """As `contradictions`, where the two rows are in different files; None: none.

    Args:
        files: Pairs by the name of their file.
    """
    judged = {
        name: {(_texts(pair), pair.label > 0.5) for pair in pairs} for name, pairs in files.items()
    }
    for first, second in combinations(judged, 2):
        opposite = {(texts, not kind) for texts, kind in judged[second]}
        if both := len({texts for texts, _ in judged[first] & opposite}):
            return (
                f"pairs of the same query and ad, relevant in one of {first} and {second} and "
                f"irrelevant in the other: {both}"
            )
    return None


def _texts(pair: LabelledPair) -> tuple[str, ...]:
    return pair.query, pair.ad.title, pair.ad.description, pair.ad.text


def _with_suggestion(name: str) -> str:
    near = nearest(name, COLUMNS)
    return f"{name!r} (did you mean {near!r}?)" if near else repr(name)
