"""What the logits of a classifier mean: from its labels or from the user, never guessed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from model_export.errors import UnsupportedCheckpoint
from service.scoring.head import Head

RELEVANT_NAMES = frozenset({"relevant", "is_relevant"})
"""Names of the relevant one of two classes that need no word of the user.

Not "positive", which is a sentiment, nor "yes" or "true", which answer an unknown question.
"""

# "2", "1.5", "grade_2", "relevance 2"; but not "LABEL_2", which transformers makes up, nor
# "5 stars", which is how good a thing is and not how relevant.
_NUMBERED = re.compile(r"(?P<prefix>|grade_?|relevance_?)(?P<number>-?\d+(?:\.\d+)?)")

SCALES: tuple[tuple[frozenset[str], ...], ...] = (
    # The four classes of the Shopping Queries data set (Reddy et al. 2022, arXiv 2206.06588).
    tuple(frozenset({name}) for name in ("irrelevant", "complement", "substitute", "exact")),
    # Graded words as in TREC's judgements; each set holds names of the same grade.
    (
        frozenset({"irrelevant", "not_relevant", "non_relevant", "not"}),
        frozenset({"marginally", "slightly"}),
        frozenset({"partially", "somewhat", "related"}),
        frozenset({"relevant"}),
        frozenset({"highly", "very"}),
        frozenset({"perfectly"}),
    ),
)
"""Names of grades that say their order themselves, worst first."""


def read_head(
    config: Any,  # noqa: ANN401  # untyped library
    relevant_label: str | None,
    grades: str | None = None,
) -> Head:
    """What the logits mean.

    One logit is a margin. Of two, one is the relevant class. Three or more are ordered grades, if
    the labels or the user say the order, or classes of which the user names the relevant one.

    Args:
        config: transformers' config of the model.
        relevant_label: The label that means relevant, or its index. A label that looks like an
            index is that label.
        grades: All labels, or their indices, from worst to best, with commas between.

    Raises:
        UnsupportedCheckpoint: The meaning is unclear, or the options do not fit the labels; the
            message goes on after "checkpoint NAME".
    """
    labels = _labels(config)
    if relevant_label is not None and grades is not None:
        raise UnsupportedCheckpoint(
            "needs --relevant-label or --grades, not both: one relevant class, or all in order"
        )
    _require_exclusive(config, labels)
    if len(labels) == 1:
        if relevant_label is not None or grades is not None:
            raise UnsupportedCheckpoint(
                "has one logit, which grows with relevance: neither --relevant-label nor --grades "
                "has a meaning for it"
            )
        return Head(kind="binary", n_logits=1)
    if relevant_label is not None:
        return _one_of(labels, _find(labels, relevant_label, "--relevant-label"))
    if grades is not None:
        return _in_order(labels, _parse_order(labels, grades))
    return _from_names(labels)


def _labels(config: Any) -> list[str]:  # noqa: ANN401  # untyped library
    n_logits = int(config.num_labels)
    names = dict(config.id2label)
    if n_logits < 1 or sorted(names) != list(range(n_logits)):
        raise UnsupportedCheckpoint(
            f"has labels with the numbers {sorted(names)}; they must count from 0, one per logit"
        )
    return [str(names[index]) for index in range(n_logits)]


def _require_exclusive(config: Any, labels: list[str]) -> None:  # noqa: ANN401  # untyped library
    kind = getattr(config, "problem_type", None)
    if len(labels) > 1 and kind in ("multi_label_classification", "regression"):
        what = "independent labels" if kind == "multi_label_classification" else "measures"
        raise UnsupportedCheckpoint(
            f"has {len(labels)} {what} {labels} (problem_type {kind}), of which any number may be "
            "true at once; a head with several logits must have exclusive classes, and a head of "
            "another kind exactly one logit"
        )


def _from_names(labels: list[str]) -> Head:
    words = [_normalized(label) for label in labels]
    if len(labels) == 2:
        named = [index for index, word in enumerate(words) if word in RELEVANT_NAMES]
        if len(named) == 1:
            return _one_of(labels, named[0])
        raise UnsupportedCheckpoint(
            f"has two classes named {labels}; say which one means relevant with --relevant-label"
        )
    places = _numbers(words) or _places(words)
    if places is None:
        raise UnsupportedCheckpoint(
            f"has {len(labels)} classes named {labels}, which state no order; name them from worst "
            "to best with --grades, or the one that means relevant with --relevant-label"
        )
    return _graded(places)


def _one_of(labels: list[str], relevant: int) -> Head:
    if len(labels) == 2:
        return Head(kind="binary", n_logits=2, relevant_index=relevant)
    return Head(kind="multiclass", n_logits=len(labels), relevant_index=relevant)


def _in_order(labels: list[str], order: list[int]) -> Head:
    """Labels as the user ordered them; of two, the better one is the relevant one."""
    if len(labels) == 2:
        return _one_of(labels, order[-1])
    places = [0.0] * len(labels)
    for place, index in enumerate(order):
        places[index] = float(place)
    return _graded(places)


def _graded(places: Sequence[float]) -> Head:
    """Grades by their place on a line: the lowest is worth 0, the highest 1."""
    lowest, highest = min(places), max(places)
    values = tuple((place - lowest) / (highest - lowest) for place in places)
    step = 1 / (len(values) - 1)
    evenly = all(abs(value - index * step) < 1e-9 for index, value in enumerate(values))
    if evenly:
        return Head(kind="ordinal", n_logits=len(values))
    return Head(kind="ordinal", n_logits=len(values), grades=values)


def _numbers(words: list[str]) -> list[float] | None:
    """The numbers that labels are, such as "grade_2"; None unless all are, each another one."""
    matches = [_NUMBERED.fullmatch(word) for word in words]
    if not all(matches) or len({match["prefix"] for match in matches if match}) > 1:
        return None
    numbers = [float(match["number"]) for match in matches if match]
    return numbers if len(set(numbers)) == len(numbers) else None


def _places(words: list[str]) -> list[float] | None:
    """Where labels stand among each other on the scale that knows them all; None without one.

    Not every grade of a scale must be there, and those that are count as evenly spaced.
    """
    stems = [word if word in _WHOLE_WORDS else word.removesuffix("_relevant") for word in words]
    for scale in SCALES:
        ranks = [rank for stem in stems for rank, names in enumerate(scale) if stem in names]
        if len(ranks) == len(stems) == len(set(ranks)):
            return [float(sorted(ranks).index(rank)) for rank in ranks]
    return None


_WHOLE_WORDS = frozenset({"not_relevant", "non_relevant"})


def _normalized(label: str) -> str:
    # A hyphen before a digit is a sign.
    return re.sub(r"(?:[\s_]|-(?!\d))+", "_", label.strip().lower())


def _parse_order(labels: list[str], grades: str) -> list[int]:
    order = [_find(labels, name.strip(), "--grades") for name in grades.split(",")]
    if sorted(order) != list(range(len(labels))):
        raise UnsupportedCheckpoint(
            f"has the labels {labels}: --grades {grades} must name each of them once, worst first"
        )
    return order


def _find(labels: list[str], name: str, option: str) -> int:
    if labels.count(name) == 1:
        return labels.index(name)
    indices = {str(index): index for index in range(len(labels))}
    if name in labels or name not in indices:
        why = "more than one is called so" if name in labels else "none is called so"
        raise UnsupportedCheckpoint(f"has the labels {labels}: {option} {name}: {why}")
    return indices[name]
