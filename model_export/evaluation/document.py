"""From scores and labels to one JSON document: every figure, interval, difference and slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from model_export.errors import BadPairsFile
from model_export.evaluation.bootstrap import CONFIDENCE, Compared, Estimate, compare
from model_export.evaluation.figures import (
    ECE_BINS,
    FIGURES,
    Truth,
    auc_statistic,
    ece_statistic,
    statistics_of,
)
from model_export.evaluation.models import Scored
from model_export.evaluation.slices import is_small, slices_of
from model_export.pairs import LabelledPair
from model_export.report.document import plain

EVALUATION_VERSION = 1


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """What the user decides.

    Attributes:
        places: k of NDCG@k.
        n_resamples: Of the bootstrap; 0 leaves the intervals out.
        seed: Of the bootstrap.
    """

    places: int = 10
    n_resamples: int = 1000
    seed: int = 0


def refuse_one_class(pairs: Sequence[LabelledPair], files: Sequence[str]) -> None:
    """Refuse pairs that tell no model from another.

    Args:
        pairs: All that were read.
        files: Where they came from, for the message.

    Raises:
        BadPairsFile: They are all relevant, or none is.
    """
    relevant = [pair.label > 0.5 for pair in pairs]
    for which, found in (("relevant", all(relevant)), ("irrelevant", not any(relevant))):
        if found:
            raise BadPairsFile(
                f"{', '.join(files)}: all {len(pairs)} pairs are {which} (relevant is a label "
                "above 0.5), and figures of quality need both kinds"
            )


def evaluation(
    pairs: Sequence[LabelledPair],
    sources: Sequence[str],
    models: Sequence[Scored],
    options: EvaluationOptions,
) -> dict[str, Any]:
    """The document: plain JSON types, figures that the pairs do not allow None.

    The same scores, pairs and options give the same document.

    Args:
        pairs: n pairs of both classes.
        sources: (n,) collection or file of each.
        models: Scores of each model; the others are compared with the first.
        options: What the user decides.
    """
    truth = Truth.of(pairs)
    compared = compare(
        [
            statistics_of(
                truth, model.scores, options.places, are_probabilities=model.are_probabilities
            )
            for model in models
        ],
        truth.n_queries,
        len(truth),
        options.n_resamples,
        options.seed,
    )
    document = {
        "evaluation_version": EVALUATION_VERSION,
        "options": {**asdict(options), "confidence": CONFIDENCE, "ece_bins": ECE_BINS},
        "pairs": _counts(truth),
        "figures": {figure.name: figure.meaning for figure in FIGURES},
        "models": [_model(model, result) for model, result in zip(models, compared, strict=True)],
        "slices": _slices(truth, sources, models, options),
    }
    made: dict[str, Any] = plain(document)
    return made


def _counts(truth: Truth) -> dict[str, int]:
    relevant = np.bincount(truth.query_of_pair, weights=truth.relevant)
    sizes = np.bincount(truth.query_of_pair)
    return {
        "n_pairs": len(truth),
        "n_queries": truth.n_queries,
        "n_relevant": int(truth.relevant.sum()),
        "n_soft_labels": int(((truth.labels > 0) & (truth.labels < 1)).sum()),
        "n_queries_with_both_classes": int(((relevant > 0) & (relevant < sizes)).sum()),
    }


def _model(model: Scored, compared: Compared) -> dict[str, Any]:
    return {
        "name": model.name,
        "kind": model.kind,
        "facts": model.facts,
        "figures": _estimates(compared.figures),
        "difference_from_first": _estimates(compared.differences),
    }


def _estimates(estimates: Mapping[str, Estimate]) -> dict[str, dict[str, float]]:
    return {name: asdict(estimate) for name, estimate in estimates.items()}


def _slices(
    truth: Truth, sources: Sequence[str], models: Sequence[Scored], options: EvaluationOptions
) -> list[dict[str, Any]]:
    """Lengths are those of the first model that has a tokenizer."""
    lengths = next((model.lengths for model in models if model.lengths is not None), None)
    made = []
    for part in slices_of(sources, lengths):
        inside = truth.part(part.chosen)
        n_relevant = int(inside.relevant.sum())
        compared = compare(
            [_slice_statistics(inside, model, part.chosen) for model in models],
            inside.n_queries,
            len(inside),
            options.n_resamples,
            options.seed,
        )
        made.append(
            {
                "group": part.group,
                "name": part.name,
                "n_pairs": len(inside),
                "n_queries": inside.n_queries,
                "n_relevant": n_relevant,
                "is_small": is_small(n_relevant, len(inside) - n_relevant),
                "figures": [_estimates(result.figures) for result in compared],
            }
        )
    return made


def _slice_statistics(inside: Truth, model: Scored, chosen: Any) -> Any:  # noqa: ANN401
    scores = model.scores[chosen]
    made = {"auc": auc_statistic(inside, scores)}
    if model.are_probabilities:
        made["calibration_error"] = ece_statistic(inside, scores)
    return made
