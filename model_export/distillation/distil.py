"""From a teacher and pairs to a checkpoint of the student that `export --checkpoint` takes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm
from transformers import set_seed

from model_export.checkpoint import Checkpoint, load_checkpoint
from model_export.distillation.recipe import REPORT_FILE, DistilRecipe, chosen_layers
from model_export.distillation.rewording import Rewording
from model_export.distillation.sources import Sources, training_pairs
from model_export.distillation.student import make_student, n_layers_of
from model_export.distillation.teacher_logits import teacher_margins
from model_export.distillation.training import DevPairs, DistilRow, train_student
from model_export.errors import ExportError
from model_export.evaluate import Quality, judge, nothing_learnt
from model_export.out_folder import move_into, partial_folder, write_report
from model_export.write_checkpoint import save_checkpoint
from service.scoring.ad_template import AdTemplate
from service.scoring.calibration import sigmoid


@dataclass(frozen=True, slots=True)
class Epoch:
    """The student after an epoch; `mean_auc` over the dev files decides which one is kept."""

    epoch: float
    mean_auc: float
    quality: dict[str, Quality]


@dataclass(frozen=True, slots=True)
class Folders:
    """Where a run reads and writes.

    Attributes:
        out: Gets the best epoch's checkpoint and `distil_report.json` when the training is over;
            until then `partial_folder(out)` has those of the best epoch so far.
        cache: Of the teacher's logits, kept for the next run.
        start: A student that an earlier run wrote, to go on from; None starts from the teacher's
            layers.
    """

    out: Path
    cache: Path
    start: Path | None = None


@dataclass(frozen=True, slots=True)
class DistilReport:
    """What was trained, how long it took and how good it is (scores without calibration).

    Attributes:
        recipe: All hyper-parameters.
        teacher: Its name.
        teacher_sha256: Of its weights, as in a bundle's manifest.
        layers: Numbers of the teacher's layers that the student started from.
        start: Report of the run that made the student which this one went on from.
        n_labelled: Training pairs with a label.
        n_unlabelled: Training pairs without.
        teacher_quality: Of the teacher, by name of the dev file.
        epochs: Each epoch so far. The dev pairs chose the best of so many.
        best: The one that is kept.
        training_s: Seconds so far, without the teacher's.
    """

    recipe: DistilRecipe
    teacher: str
    teacher_sha256: str
    layers: tuple[int, ...]
    n_labelled: int
    n_unlabelled: int
    teacher_quality: dict[str, Quality]
    epochs: tuple[Epoch, ...] = field(default_factory=tuple)
    best: Epoch | None = None
    training_s: float = 0.0
    start: Mapping[str, Any] | None = None


def distil(
    teacher: Checkpoint,
    sources: Sources,
    dev: DevPairs,
    folders: Folders,
    recipe: DistilRecipe,
    *,
    show_progress: bool = True,
    tell: Callable[[str], None] = lambda _: None,
) -> DistilReport:
    """Train a student and keep the best epoch's, as a whole checkpoint.

    Args:
        teacher: Any checkpoint that can be served, of a family in `student.PRUNABLE`.
        sources: Where the pairs come from.
        dev: Held-out pairs of both classes by file. Their queries never enter the training pairs.
        folders: Where things are.
        recipe: Hyper-parameters; the same ones on the same kind of machine give the same student.
        show_progress: Whether to draw progress bars.
        tell: Told a line about the teacher and about each epoch.

    Raises:
        ExportError: Layers, pairs or a teacher that cannot be used.
    """
    earlier = None if folders.start is None else read_report(folders.start)
    layers = (
        chosen_layers(recipe, n_layers_of(teacher.model))
        if earlier is None
        else tuple(earlier["layers"])
    )
    if teacher.template != AdTemplate():
        raise ExportError(
            f"teacher {teacher.name} reads {', '.join(teacher.template.fields)} of an ad, which a "
            "checkpoint folder cannot say; take a teacher with the default template"
        )
    set_seed(recipe.seed)
    student = make_student(teacher.model, layers)
    if folders.start is not None:
        started = load_checkpoint(str(folders.start), None, None).model
        student.load_state_dict(started.state_dict())
    render = teacher.template.render
    dev_queries = {pair.query for pairs in dev.values() for pair in pairs}
    labels = training_pairs(sources, dev_queries, recipe, _rewording(teacher, recipe))
    dev_texts = {
        name: [(pair.query, render(pair.ad)) for pair in pairs] for name, pairs in dev.items()
    }
    texts = [pair for pairs in dev_texts.values() for pair in pairs]
    if not recipe.hidden_weight:  # else the teacher is asked in training
        texts = [*labels, *texts]
    with tqdm(total=len(texts), unit="pair", desc="teacher", disable=not show_progress) as bar:
        margins = dict(
            zip(texts, teacher_margins(teacher, texts, folders.cache, bar.update), strict=True)
        )
    n_labelled = sum(label is not None for label in labels.values())
    report = DistilReport(
        recipe=recipe,
        teacher=teacher.name,
        teacher_sha256=teacher.source_sha256,
        layers=layers,
        n_labelled=n_labelled,
        n_unlabelled=len(labels) - n_labelled,
        teacher_quality={
            name: judge(pairs, sigmoid(np.array([margins[pair] for pair in dev_texts[name]])))
            for name, pairs in dev.items()
        },
        start=earlier,
    )
    tell(
        f"{n_labelled} labelled and {report.n_unlabelled} unlabelled pairs; teacher: mean AUC "
        f"{_mean_auc(report.teacher_quality):.4f}"
    )
    started_s = time.monotonic()
    partial = partial_folder(folders.out)

    def keep_the_best(model: Any, epoch: float, quality: dict[str, Quality]) -> None:  # noqa: ANN401
        nonlocal report
        now = Epoch(epoch, _mean_auc(quality), quality)
        is_best = report.best is None or now.mean_auc > report.best.mean_auc
        report = replace(
            report,
            epochs=(*report.epochs, now),
            best=now if is_best else report.best,
            training_s=round(time.monotonic() - started_s, 1),
        )
        if is_best:
            save_checkpoint(model, teacher.tokenizer, partial, teacher.max_length_tokens)
        write_report(partial, REPORT_FILE, report)
        tell(f"epoch {epoch:g}: mean AUC {now.mean_auc:.4f}{', kept' if is_best else ''}")

    rows = [DistilRow(pair, margins.get(pair), label) for pair, label in labels.items()]
    train_student(student, teacher, rows, dev, recipe, keep_the_best, show_progress=show_progress)
    move_into(partial, folders.out)
    if report.best is not None and (sentence := nothing_learnt(report.best.mean_auc)):
        tell(f"warning: {sentence}")
    return report


def read_report(folder: Path) -> dict[str, Any]:
    """The report that `distil` wrote beside a student.

    Raises:
        ExportError: There is none, or it does not say which layers the student has.
    """
    path = folder / REPORT_FILE
    try:
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        report["layers"] = [int(number) for number in report["layers"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExportError(f"{path} is no report of distil: {error!r}") from error
    return report


def _rewording(teacher: Checkpoint, recipe: DistilRecipe) -> Rewording | None:
    if not (recipe.reworded_share or recipe.cut_share or recipe.varied_pairs):
        return None
    vectors = teacher.model.get_input_embeddings().weight.detach().cpu().numpy()
    return Rewording(teacher.tokenizer.get_vocab(), vectors)


def _mean_auc(quality: Mapping[str, Quality]) -> float:
    known = [figures.auc for figures in quality.values() if figures.auc is not None]
    return sum(known) / len(known)
