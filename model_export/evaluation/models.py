"""Scores of bundles and checkpoints on the same pairs, each through the classes that serve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from model_export.evaluation.slices import PairLengths
from model_export.pairs import LabelledPair
from service.cpu import usable_cores
from service.scoring.ad_template import AdTemplate
from service.scoring.bulk import bulk_logits
from service.scoring.bundle import open_bundle
from service.scoring.calibration import Identity, to_scores
from service.scoring.encoding import EncodedPair, PairEncoder

ScoredKind = Literal["bundle", "checkpoint", "baseline"]

OnProgress = Callable[[int], None]


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """What one model says of all pairs.

    Attributes:
        name: As the user wrote it, or the name of a baseline.
        kind: What it is.
        scores: (n,) float64 in the order of the pairs.
        are_probabilities: Whether a score claims to be the probability of relevance.
        facts: What else a reader of the JSON may want to know of it.
        lengths: Of the pairs, to its tokenizer; None where it has none.
    """

    name: str
    kind: ScoredKind
    scores: NDArray[np.float64]
    are_probabilities: bool
    facts: dict[str, Any] = field(default_factory=dict)
    lengths: PairLengths | None = None


def score_with_bundle(
    folder: Path, pairs: Sequence[LabelledPair], on_progress: OnProgress = lambda _: None
) -> Scored:
    """Calibrated scores of a bundle, on every core.

    Raises:
        StartupError: It cannot be opened.
    """
    bundle = open_bundle(folder)
    encoded, lengths = _encode(bundle.encoder, bundle.template, pairs)
    logits = bulk_logits(bundle.model, encoded, threads=usable_cores(), on_progress=on_progress)
    manifest = bundle.manifest
    return Scored(
        name=str(folder),
        kind="bundle",
        scores=bundle.to_scores(logits),
        are_probabilities=True,
        facts={
            "model": manifest.model.name,
            "version": manifest.model.version,
            "precision": manifest.precision.weights,
            "max_length_tokens": manifest.inputs.max_length_tokens,
            "score_calibration": manifest.score_calibration.method,
        },
        lengths=lengths,
    )


def score_with_checkpoint(
    reference: str,
    pairs: Sequence[LabelledPair],
    on_progress: OnProgress = lambda _: None,
    **options: Any,  # noqa: ANN401  # passed through
) -> Scored:
    """Scores of the original torch model, each pair alone; calibrated if it comes with a map.

    Args:
        reference: Folder of a checkpoint or of an adapter, or a hub id.
        pairs: n pairs.
        on_progress: Told how many more are done.
        options: `relevant_label`, `grades`, `allow_pickle` and `max_length` of `load_original`.

    Raises:
        UnsupportedCheckpoint: It cannot be served, and so not judged as it would be served.
    """
    # torch and its kin: bundles are judged without them.
    from model_export.reference_logits import load_original, pair_encoder, reference_logits

    checkpoint = load_original(reference, **options)
    encoded, lengths = _encode(pair_encoder(checkpoint), checkpoint.template, pairs)
    logits = reference_logits(checkpoint, encoded, on_progress)
    calibration = checkpoint.calibration or Identity()
    return Scored(
        name=reference,
        kind="checkpoint",
        scores=to_scores(logits, checkpoint.head, calibration),
        are_probabilities=True,
        facts={
            "model": checkpoint.name,
            "source_sha256": checkpoint.source_sha256,
            "max_length_tokens": checkpoint.max_length_tokens,
            "score_calibration": calibration.method,
        },
        lengths=lengths,
    )


def _encode(
    encoder: PairEncoder, template: AdTemplate, pairs: Sequence[LabelledPair]
) -> tuple[list[EncodedPair], PairLengths]:
    queries = encoder.tokenize([pair.query for pair in pairs])
    ads = encoder.tokenize([template.render(pair.ad) for pair in pairs])
    encoded = [encoder.join(query, ad) for query, ad in zip(queries, ads, strict=True)]
    return encoded, PairLengths(
        query_tokens=np.array([len(ids) for ids in queries], dtype=np.int64),
        ad_tokens=np.array([len(ids) for ids in ads], dtype=np.int64),
        truncated=np.array([pair.truncated for pair in encoded], dtype=np.bool_),
    )
