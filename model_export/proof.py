"""What an export measures its graphs on, and what it saw: pairs, the original's logits, figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from model_export import parity
from model_export.checkpoint import Checkpoint
from model_export.errors import ParityFailed, UnsupportedCheckpoint
from model_export.evaluate import Quality, judge
from model_export.gate_advice import next_steps
from model_export.options import Precision
from model_export.pairs import LabelledPair
from model_export.parity import Logits, Tolerances
from model_export.reference_logits import pair_encoder, reference_logits
from model_export.reference_pairs import N_AWKWARD, reference_pairs, vocabulary_pairs
from service.cpu import usable_cores
from service.errors import InferenceFailed
from service.scoring.bulk import bulk_logits
from service.scoring.calibration import Identity, Scores, to_scores
from service.scoring.encoding import EncodedPair
from service.scoring.head import Margins, margin
from service.scoring.onnx_model import OnnxModel
from service.startup_errors import BundleIncompatible

SAME_SCORE = 1e-7  # largest difference of scores that are one score
N_SPREAD_PAIRS = 96  # made pairs; they have every length, and more would only take longer


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A graph and what was seen of it.

    Attributes:
        precision: Of its weights.
        recipe: How they came to it.
        file: The graph itself; on disk, since a large one should not lie in memory twice.
        model: An open session on it.
        logits: (n, k) of all pairs.
        spread: (m,) of the first pairs: largest change of the uncalibrated score in company.
        quality: Of the uncalibrated scores on the labelled pairs; None without any.
        figures: By the names in `Tolerances`.
        tolerances: What they may be.
    """

    precision: Precision
    recipe: str
    file: Path
    model: OnnxModel
    logits: Logits
    spread: Scores
    quality: Quality | None
    figures: dict[str, Any]
    tolerances: Tolerances

    @property
    def stage(self) -> str:
        """What was compared."""
        return f"torch against {self.precision}"

    def load_graph(self) -> onnx.ModelProto:
        """The graph, for a pass to change in place."""
        return onnx.load(self.file)


class Proof:
    """The pairs that every graph of one export is measured on: the made ones, then the labelled."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        labelled: Sequence[LabelledPair],
        folder: Path,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Encode the pairs as the service will, and score them with the original model.

        Args:
            checkpoint: The original.
            labelled: The user's pairs; may be none.
            folder: Where graphs can be kept for as long as this is used.
            on_progress: Told how many more pairs the original has scored.

        Raises:
            UnsupportedCheckpoint: Its tokenizer cannot join pairs or does not fit it, or it gives
                all pairs one score.
        """
        self.checkpoint = checkpoint
        self.labelled = labelled
        self._folder = folder
        render = checkpoint.template.render
        made = [(query, render(ad)) for query, ad in reference_pairs()]
        made[N_AWKWARD:N_AWKWARD] = vocabulary_pairs(checkpoint.tokenizer.get_vocab())
        self.texts = made + [(pair.query, render(pair.ad)) for pair in labelled]
        self.n_made = len(made)
        encoder = pair_encoder(checkpoint)
        self.encoded: list[EncodedPair] = [
            encoder.encode(query, [ad_text])[0] for query, ad_text in self.texts
        ]
        self.reference = reference_logits(checkpoint, self.encoded, on_progress)
        if float(np.ptp(self.scores(self.reference))) < SAME_SCORE:
            raise UnsupportedCheckpoint(
                f"checkpoint {checkpoint.name} gives every pair the same score: there is nothing "
                "to rank by, and no parity to prove"
            )
        self.reference_quality = self._quality(self.reference)

    def measure(
        self, graph: onnx.ModelProto, precision: Precision, recipe: str, tolerances: Tolerances
    ) -> Measured:
        """Run a graph on all pairs and compare it with the original; judges nothing.

        Raises:
            UnsupportedCheckpoint: The graph cannot be opened or run.
        """
        try:
            return self._measure(graph, precision, recipe, tolerances)
        except (InferenceFailed, BundleIncompatible) as error:
            reason = " ".join(str(error).split())
            raise UnsupportedCheckpoint(
                f"checkpoint {self.checkpoint.name} became a graph that ONNX Runtime cannot run: "
                f"{reason}"
            ) from error

    def _measure(
        self, graph: onnx.ModelProto, precision: Precision, recipe: str, tolerances: Tolerances
    ) -> Measured:
        path = self._folder / f"{precision}.onnx"
        onnx.save(graph, path)
        model = OnnxModel(
            path, n_logits=self.checkpoint.head.n_logits, pad_id=self.checkpoint.pad_id
        )
        logits = bulk_logits(model, self.encoded, threads=usable_cores())
        alone, companies = parity.logits_in_company(
            model, self.encoded[:N_SPREAD_PAIRS], usable_cores()
        )
        alone_scores = self.scores(alone)
        moved = [np.abs(self.scores(company) - alone_scores) for company in companies.values()]
        fidelity = parity.compare(
            self.reference, logits, self.checkpoint.head, parity.largest_change(alone, companies)
        )
        quality = self._quality(logits)
        return Measured(
            precision=precision,
            recipe=recipe,
            file=path,
            model=model,
            logits=logits,
            spread=np.max(moved, axis=0),
            quality=quality,
            figures={
                **fidelity.figures(),
                "n_spread_pairs": len(alone),
                **self._losses(quality),
            },
            tolerances=tolerances,
        )

    def require(self, measured: Measured) -> None:
        """Refuse a graph that is past a tolerance.

        Raises:
            ParityFailed: Names every tolerance that is not met, the worst pairs, and what to do.
        """
        if names := parity.missed(measured.figures, measured.tolerances):
            table = parity.worst_pairs_table(
                self.texts, self.reference, measured.logits, self.checkpoint.head
            )
            raise ParityFailed(
                measured.stage,
                parity.violations(measured.figures, measured.tolerances),
                table,
                next_steps(names, measured.precision),
            )

    def scores(self, logits: Logits) -> Scores:
        """Uncalibrated scores, which a flat calibration cannot make look alike."""
        return to_scores(logits, self.checkpoint.head, Identity())

    def of_labelled(self, values: Logits) -> Logits:
        """The rows of the labelled pairs."""
        return values[self.n_made :]

    def margins_of_labelled(self, logits: Logits) -> Margins:
        """Log-odds of relevance of the labelled pairs before calibration."""
        return margin(self.of_labelled(logits), self.checkpoint.head)

    def _quality(self, logits: Logits) -> Quality | None:
        if not self.labelled:
            return None
        return judge(self.labelled, self.scores(self.of_labelled(logits)))

    def _losses(self, quality: Quality | None) -> dict[str, float]:
        """What ranking quality was lost; nothing where the labels allow no figure."""
        if quality is None or self.reference_quality is None:
            return {}
        before, after = asdict(self.reference_quality), asdict(quality)
        return {
            f"{short}_loss": before[name] - after[name]
            for short, name in (("auc", "auc"), ("ndcg", "ndcg_at_10"))
            if before[name] is not None and after[name] is not None
        }
