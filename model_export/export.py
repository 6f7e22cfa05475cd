"""From a checkpoint to a bundle that has proved itself: the steps, in order."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import onnx

from model_export import parity, rowwise_int8
from model_export.checkpoint import Checkpoint
from model_export.errors import UnsupportedCheckpoint
from model_export.evaluate import judge
from model_export.fit_calibration import fit_score_calibration, require_both_classes
from model_export.pairs import LabelledPair
from model_export.reference_pairs import reference_pairs
from model_export.to_onnx import convert
from model_export.write_bundle import GoldenPair, check_target, write_bundle
from service.cpu import usable_cores
from service.scoring.bulk import bulk_logits
from service.scoring.calibration import ScoreCalibration, margin, to_scores
from service.scoring.encoding import EncodedPair, PairEncoder
from service.scoring.manifest import SCHEMA_VERSION, Manifest
from service.scoring.onnx_model import OnnxModel

Precision = Literal["fp32", "int8"]
Report = Callable[[str], None]

N_GOLDEN_PAIRS = 32
N_SPREAD_PAIRS = 96  # made pairs; they have every length, and more would only take longer
HISTOGRAM_BINS = 10

# Same graph, another CPU: integer products are exact, but exp and erf differ in the last bit
# between instruction sets, and int8 rounding can turn a last bit into one quantization step.
GOLDEN_LOGIT_TOLERANCE = {"fp32": 1e-3, "int8": 0.1}

TOOLS = ("torch", "transformers", "optimum", "optimum-onnx", "onnx", "onnxruntime", "tokenizers")


def export_bundle(
    checkpoint: Checkpoint,
    precision: Precision,
    out: Path,
    labelled: Sequence[LabelledPair] = (),
    report: Report = print,
) -> Manifest:
    """Convert, quantize, prove, calibrate and write.

    Args:
        checkpoint: What to export.
        precision: Of the weights.
        out: Folder of the bundle.
        labelled: Pairs to calibrate on and to judge by; parity is then measured on them too.
            Without any, a calibration stored with the checkpoint is used, else the identity.
        report: Told of each step and its figures.

    Returns:
        The manifest as written.

    Raises:
        ExportError: Nothing was written; the message says why.
    """
    check_target(out)
    if labelled:  # before the minutes that come, not after
        require_both_classes([pair.label for pair in labelled])
    work = _Work(checkpoint, labelled)
    report(f"[1/5] convert {checkpoint.name} ({type(checkpoint.model).__name__}) to ONNX, fuse")
    graph = convert(checkpoint.model, checkpoint.tokenizer)
    report(f"[2/5] parity of torch and fp32 on {len(work.encoded)} pairs")
    work.reference = parity.torch_logits(checkpoint.model, work.encoded)
    figures = {"fp32": work.measure(graph, "fp32", report)}
    recipe = "fp32"
    if precision == "int8":
        recipe = rowwise_int8.RECIPE
        n_products = rowwise_int8.quantize_rowwise(graph)
        report(f"[3/5] quantize {n_products} products, {recipe}; parity of torch and int8")
        figures["int8"] = work.measure(graph, "int8", report)
    else:
        report("[3/5] no quantization asked for")
    calibration = work.calibrate()
    report(f"[4/5] score calibration: {calibration.fitted_on}")
    quality = work.judge_by(calibration)
    report(f"[5/5] write {out}")
    facts = _facts(work, calibration, recipe, precision)
    facts.update(parity=figures, quality=quality)
    return write_bundle(out, graph, checkpoint.backend, work.golden(), facts)


class _Work:
    """The pairs, and the logits of the last graph that was measured on them."""

    def __init__(self, checkpoint: Checkpoint, labelled: Sequence[LabelledPair]) -> None:
        self.checkpoint = checkpoint
        self.labelled = labelled
        made = [(query, checkpoint.template.render(ad)) for query, ad in reference_pairs()]
        brought = [(pair.query, checkpoint.template.render(pair.ad)) for pair in labelled]
        self.n_made = len(made)
        self.texts = made + brought
        try:
            encoder = PairEncoder(checkpoint.backend, checkpoint.max_length_tokens)
        except ValueError as error:
            raise UnsupportedCheckpoint(f"checkpoint {checkpoint.name}: {error}") from error
        self.encoded: list[EncodedPair] = [
            encoder.encode(query, [ad_text])[0] for query, ad_text in self.texts
        ]
        self.reference = np.empty((0, 0), dtype=np.float32)
        self.logits = np.empty((0, 0), dtype=np.float32)
        self.input_names: tuple[str, ...] = ()

    def measure(self, graph: onnx.ModelProto, precision: Precision, report: Report) -> Any:  # noqa: ANN401
        """Fidelity figures of a graph against torch; raises ParityFailed past the tolerances."""
        checkpoint = self.checkpoint
        head = checkpoint.head
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            onnx.save(graph, path)
            model = OnnxModel(path, n_logits=head.n_logits, pad_id=checkpoint.pad_id)
            self.input_names = model.input_names
            self.logits = bulk_logits(model, self.encoded, threads=usable_cores())
            spread = parity.batch_spread(model, self.encoded[:N_SPREAD_PAIRS])
        fidelity = parity.compare(self.reference, self.logits, head, spread)
        report("      " + "  ".join(f"{k} {v:.6g}" for k, v in fidelity.figures().items()))
        parity.require_parity(
            f"torch against {precision}",
            fidelity,
            parity.TOLERANCES[precision],
            lambda: parity.worst_pairs_table(self.texts, self.reference, self.logits, head),
        )
        return fidelity.figures()

    def calibrate(self) -> ScoreCalibration:
        """Fitted on the labelled pairs through the graph to serve; else what the checkpoint has."""
        if not self.labelled:
            return self.checkpoint.calibration or ScoreCalibration()
        margins = margin(self.logits[self.n_made :], self.checkpoint.head)
        labels = [pair.label for pair in self.labelled]
        return fit_score_calibration(margins, labels, f"{len(labels)} pairs given at export")

    def judge_by(self, calibration: ScoreCalibration) -> dict[str, Any]:
        """Quality on the labelled pairs, of the original and of the graph to serve."""
        if not self.labelled:
            return {}
        head, rows = self.checkpoint.head, slice(self.n_made, None)
        return {
            "torch": asdict(
                judge(self.labelled, to_scores(self.reference[rows], head, calibration))
            ),
            "served": asdict(judge(self.labelled, to_scores(self.logits[rows], head, calibration))),
        }

    def golden(self) -> list[GoldenPair]:
        """The first made pairs, awkward ones among them, with the served graph's logits."""
        return [
            GoldenPair(query, ad_text, tuple(float(value) for value in row))
            for (query, ad_text), row in zip(
                self.texts[:N_GOLDEN_PAIRS], self.logits[:N_GOLDEN_PAIRS], strict=True
            )
        ]


def _facts(
    work: _Work, calibration: ScoreCalibration, recipe: str, precision: Precision
) -> dict[str, Any]:
    checkpoint = work.checkpoint
    scores = to_scores(work.logits, checkpoint.head, calibration)
    counts, _ = np.histogram(scores, bins=HISTOGRAM_BINS, range=(0.0, 1.0))
    template = checkpoint.template
    return {
        "schema_version": SCHEMA_VERSION,
        "model": {
            "name": checkpoint.name,
            "architecture": type(checkpoint.model).__name__,
            "source": checkpoint.source,
            "source_sha256": checkpoint.source_sha256,
        },
        "head": checkpoint.head.model_dump(),
        "inputs": {
            "names": list(work.input_names),
            "max_length_tokens": checkpoint.max_length_tokens,
            "pad_id": checkpoint.pad_id,
            "ad_text": {"fields": list(template.fields), "separator": template.separator},
        },
        "precision": {
            "weights": precision,
            "recipe": recipe,
            "checked_on": f"{platform.machine()} CPU, ONNX Runtime CPUExecutionProvider",
        },
        "score_calibration": calibration.model_dump(),
        "golden": {
            "n_pairs": N_GOLDEN_PAIRS,
            "logit_tolerance": GOLDEN_LOGIT_TOLERANCE[precision],
        },
        "score_histogram": [round(float(count) / len(scores), 4) for count in counts],
        "tool_versions": {tool: version(tool) for tool in TOOLS},
    }
