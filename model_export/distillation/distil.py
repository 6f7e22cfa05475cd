"""From a teacher and pairs to a checkpoint of the student that `export --checkpoint` takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm
from transformers import set_seed

from model_export.base_weights import weights_sha256
from model_export.checkpoint import Checkpoint, load_checkpoint
from model_export.distillation.best_student import BestStudent, mean_auc
from model_export.distillation.recipe import DistilRecipe, chosen_layers
from model_export.distillation.report import DistilReport, read_report
from model_export.distillation.rewording import Rewording
from model_export.distillation.sources import Sources, training_pairs
from model_export.distillation.student import make_student, n_layers_of
from model_export.distillation.teacher_logits import teacher_margins
from model_export.distillation.training import DevPairs, DistilRow, train_student
from model_export.errors import ExportError
from model_export.evaluate import judge, nothing_learnt
from model_export.finetuning.run_folder import close_run, open_run, run_folder, sha256_of_json
from model_export.out_folder import move_into
from service.scoring.ad_template import AdTemplate
from service.scoring.calibration import sigmoid

BEST, TRAINING = "best", "training"
"""Folders of a run: the best student so far, and what the Trainer goes on from."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Where a run reads and writes.

    Attributes:
        out: Gets the best epoch's checkpoint and `distil_report.json` when the training is over;
            until then `run_folder(out)` has what a stopped run goes on from.
        cache: Of the teacher's logits, kept for the next run.
        start: A student that an earlier run wrote, to go on from; None starts from the teacher's
            layers.
    """

    out: Path
    cache: Path
    start: Path | None = None


def distil(
    teacher: Checkpoint,
    sources: Sources,
    dev: DevPairs,
    folders: Folders,
    recipe: DistilRecipe,
    *,
    resume: bool = False,
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
        resume: Go on with a run for `out` that was stopped, from the last state that it wrote.
        show_progress: Whether to draw progress bars.
        tell: Told a line about the teacher and about each epoch.

    Raises:
        ExportError: Layers, pairs or a teacher that cannot be used, or a stopped run is in the way.
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
    run = run_folder(folders.out)
    facts = {
        "recipe": asdict(recipe),
        "teacher": [teacher.source_sha256, teacher.max_length_tokens],
        "start": None if folders.start is None else weights_sha256(folders.start),
        "pairs": sha256_of_json([[*sources.labels.items()], sources.ads, sources.queries]),
        "dev pairs": sha256_of_json({name: [*map(asdict, own)] for name, own in dev.items()}),
    }
    open_run(run, facts, resume=resume)
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
        f"{mean_auc(report.teacher_quality):.4f}"
    )
    best = BestStudent(run / BEST, teacher, report, tell)
    rows = [DistilRow(pair, margins.get(pair), label) for pair, label in labels.items()]
    train_student(
        student, teacher, rows, dev, recipe, run / TRAINING, best.take, show_progress=show_progress
    )
    report = best.report
    move_into(best.folder, folders.out)
    close_run(run)
    if report.best is not None and (sentence := nothing_learnt(report.best.mean_auc)):
        tell(f"warning: {sentence}")
    return report


def _rewording(teacher: Checkpoint, recipe: DistilRecipe) -> Rewording | None:
    if not (recipe.reworded_share or recipe.cut_share or recipe.varied_pairs):
        return None
    vectors = teacher.model.get_input_embeddings().weight.detach().cpu().numpy()
    return Rewording(teacher.tokenizer.get_vocab(), vectors)
