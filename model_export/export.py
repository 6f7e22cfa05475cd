"""From a checkpoint to a bundle that has proved itself: the steps, in order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from model_export.bundle_facts import bundle_facts
from model_export.calibration_fit import CalibrationFit
from model_export.calibration_words import reasons_of
from model_export.checkpoint import Checkpoint
from model_export.errors import ParityFailed, QuantizationFailed, UnsupportedCheckpoint
from model_export.evidence import evidence_of
from model_export.fit_calibration import fit_score_calibration, require_both_classes, require_rising
from model_export.half_precision import to_half_precision
from model_export.options import ExportOptions
from model_export.pairs import LabelledPair
from model_export.proof import Measured, Proof
from model_export.rowwise_int8 import quantize_rowwise, recipe_name
from model_export.to_onnx import convert
from model_export.token_rows import lay_out_token_rows
from model_export.write_bundle import GoldenPair, check_target, write_bundle
from service.scoring.calibration import Identity, ScoreCalibration, to_scores
from service.scoring.manifest import Manifest
from service.scoring.target import WEIGHT_BITS

Report = Callable[[str], None]

N_GOLDEN_PAIRS = 32
MANY_UNKNOWN = 0.2


def export_bundle(
    checkpoint: Checkpoint,
    options: ExportOptions,
    out: Path,
    labelled: Sequence[LabelledPair] = (),
    report: Report = print,
) -> Manifest:
    """Convert, quantize, prove, calibrate and write.

    Args:
        checkpoint: What to export.
        options: Precision, target and tolerances.
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
    options.require_machine()
    if labelled:  # before the minutes that come, not after
        require_both_classes([pair.label for pair in labelled])
    for note in filter(None, (*checkpoint.notes, checkpoint.length_note)):
        report(f"note: {note}")
    with TemporaryDirectory() as folder:
        proof = _prepare(checkpoint, labelled, Path(folder), report)
        report(f"[1/5] convert {checkpoint.name} ({type(checkpoint.model).__name__}) to ONNX, fuse")
        try:
            graph = convert(checkpoint.model, checkpoint.tokenizer, for_gpu=options.for_gpu)
        except UnsupportedCheckpoint as error:
            raise UnsupportedCheckpoint(f"checkpoint {checkpoint.name} {error}") from error
        layout = "fused"
        if not options.for_gpu and lay_out_token_rows(graph):
            layout = "fused, token rows"
        report(f"[2/5] parity of torch and fp32 ({layout}) on {len(proof.encoded)} pairs")
        fp32 = proof.measure(graph, "fp32", "fp32", options.tolerances_of("fp32"))
        _tell(fp32, report)
        proof.require(fp32)
        del graph
        stages, note = [fp32], ""
        if options.precision == "fp32":
            report("[3/5] no quantization asked for")
        else:
            stages, note = _reduce(proof, fp32, options, report)
        served = stages[-1]
        calibration, fit = _calibrate(proof, served)
        _tell_of_calibration(proof, calibration, fit, report)
        scores = to_scores(served.logits, checkpoint.head, calibration)
        facts = bundle_facts(proof, stages, options, calibration, fit, scores, note)
        report(f"[5/5] write {out}")
        return write_bundle(
            out,
            served.file,
            checkpoint.backend,
            _golden(proof, served),
            facts,
            lambda manifest: evidence_of(proof, stages, manifest, scores, fit, options),
        )


def _prepare(
    checkpoint: Checkpoint, labelled: Sequence[LabelledPair], folder: Path, report: Report
) -> Proof:
    """What the original says; refused where it does not order the labelled pairs."""
    from tqdm import tqdm

    with tqdm(unit="pair", desc="torch", file=sys.stderr, disable=None, leave=False) as progress:
        proof = Proof(checkpoint, labelled, folder, progress.update)
    _warn_of_unknown_tokens(proof, report)
    if labelled:
        require_rising(
            proof.margins_of_labelled(proof.reference), [pair.label for pair in labelled]
        )
    return proof


def _warn_of_unknown_tokens(proof: Proof, report: Report) -> None:
    unknown = proof.checkpoint.tokenizer.unk_token_id
    if unknown is None:
        return
    ids = np.concatenate([pair.ids for pair in proof.encoded])
    share = float((ids == unknown).mean())
    if share > MANY_UNKNOWN:
        report(
            f"note: {share:.0%} of the tokens of the pairs below are unknown to the tokenizer, so "
            "they prove little; bring pairs in the model's own language with --calibrate"
        )


def _reduce(
    proof: Proof, fp32: Measured, options: ExportOptions, report: Report
) -> tuple[list[Measured], str]:
    """The asked-for precision, proved; or fp32 again where it may be fallen back to.

    Returns:
        What was measured, the graph to serve last, and why it is not the asked-for one.
    """
    precision = options.precision
    tolerances = options.tolerances_of(precision)
    try:
        if precision == "fp16":
            graph, recipe = to_half_precision(fp32.load_graph()), "fp16"
            report("[3/5] to fp16; parity of torch and fp16, on the CPU")
        else:
            bits = WEIGHT_BITS[options.target]
            graph, recipe = fp32.load_graph(), recipe_name(bits)
            n_products = quantize_rowwise(graph, bits)
            report(f"[3/5] quantize {n_products} products, {recipe}; parity of torch and int8")
        reduced = proof.measure(graph, precision, recipe, tolerances)
        _tell(reduced, report)
        proof.require(reduced)
    except (ParityFailed, QuantizationFailed) as error:
        if not options.fall_back:
            raise
        seen, reasons = (
            (error.seen, error.broken)
            if isinstance(error, ParityFailed)
            else (str(error), (str(error),))
        )
        report(f"{seen}\n      fall back to fp32")
        return [fp32], f"{precision} was asked for and refused: {'; '.join(reasons)}"
    return [fp32, reduced], ""


def _tell(measured: Measured, report: Report) -> None:
    report("      " + "  ".join(f"{k} {v:.6g}" for k, v in measured.figures.items()))


def _calibrate(proof: Proof, served: Measured) -> tuple[ScoreCalibration, CalibrationFit | None]:
    """Fitted on the labelled pairs through the graph to serve; else what the checkpoint has."""
    if not proof.labelled:
        return proof.checkpoint.calibration or Identity(), None
    pairs = proof.labelled
    fit = fit_score_calibration(
        proof.margins_of_labelled(served.logits),
        [pair.label for pair in pairs],
        [pair.query for pair in pairs],
        f"{len(pairs)} pairs given at export",
    )
    return fit.calibration, fit


def _tell_of_calibration(
    proof: Proof, calibration: ScoreCalibration, fit: CalibrationFit | None, report: Report
) -> None:
    if fit is not None and proof.checkpoint.calibration is not None:
        report("note: the score calibration stored with the checkpoint is replaced")
    if fit is None and calibration == Identity():
        report("[4/5] no score calibration")
        report(
            "warning: scores are not calibrated: 0.8 need not mean that 80 of 100 such pairs are "
            "relevant; give labelled pairs with --calibrate"
        )
        return
    report(f"[4/5] score calibration: {calibration.method}, {calibration.fitted_on}")
    if fit is not None:
        pairs = proof.labelled
        for line in reasons_of(fit, len(pairs), len({pair.query for pair in pairs})):
            report(f"      {line}")


def _golden(proof: Proof, served: Measured) -> list[GoldenPair]:
    """The first made pairs, awkward ones among them, with the served graph's logits."""
    return [
        GoldenPair(query, ad_text, tuple(float(value) for value in row))
        for (query, ad_text), row in zip(
            proof.texts[:N_GOLDEN_PAIRS], served.logits[:N_GOLDEN_PAIRS], strict=True
        )
    ]
