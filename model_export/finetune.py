"""From files of labelled pairs to an adapter or a checkpoint with its figures.

The default recipe, that of the default model, has two stages: first imitate the base's own
sentence similarity on many unjudged pairs, then learn the human labels. `similarity_teacher` says
why. All others have the second alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from transformers import AutoTokenizer, set_seed

from model_export.adapter import AdapterFacts, save_adapter
from model_export.adapter_checkpoint import load_adapted
from model_export.base_weights import resolve_base, weights_sha256
from model_export.checkpoint import load_checkpoint
from model_export.evaluate import Quality, judge, nothing_learnt
from model_export.finetuning.checks import deciding_figure, mean_figure, refuse_unusable
from model_export.finetuning.hard_negatives import mine_hard_negatives
from model_export.finetuning.objectives import label_names
from model_export.finetuning.run_folder import close_run, open_run, run_folder
from model_export.finetuning.stages import Task, train
from model_export.held_out_margins import held_out_margins, write_calibration
from model_export.out_folder import move_into, partial_folder, write_report
from model_export.pair_notes import contradictions_between
from model_export.pairs import LabelledPair, read_pairs
from model_export.recipe import REPORT_FILE, FinetuneRecipe
from model_export.training import FIGURE
from model_export.write_checkpoint import save_checkpoint
from service.scoring.bundle_files import sha256_of
from service.scoring.calibration import sigmoid

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class FinetuneReport:
    """What was trained, how long it took and how good it is (scores without calibration).

    Attributes:
        recipe: All hyper-parameters.
        n_training_pairs: Hard negatives included.
        n_hard_negatives: Of them.
        labels: Names of the logits, worst first; none for a single logit.
        epochs: Of the last stage: `epoch`, mean `loss`, `figure` (what chooses the best epoch: mean
            AUC of the dev files, for ranking losses NDCG@10), `quality` by dev file.
        kept_epoch: The one that was written.
        training_s: Seconds of this run; of a resumed one, since then.
        quality: By name of the dev file; measured on what was written, as read back from disk.
        learnt_nothing: A sentence where that is worse than chance.
    """

    recipe: FinetuneRecipe
    n_training_pairs: int
    n_hard_negatives: int
    labels: tuple[str, ...]
    epochs: tuple[dict[str, Any], ...]
    kept_epoch: float
    training_s: float
    quality: dict[str, Quality]
    learnt_nothing: str | None


def finetune(
    train_files: Sequence[Path],
    dev_files: Sequence[Path],
    base: str,
    out: Path,
    recipe: FinetuneRecipe,
    *,
    resume: bool = False,
    show_progress: bool = True,
    tell: Tell = lambda _: None,
) -> FinetuneReport:
    """Train, write an adapter (lora) or a checkpoint to the folder `out`, judge what was written.

    Args:
        train_files: Files of labelled pairs, see `read_pairs`.
        dev_files: Files of held-out pairs; they decide which epoch is kept and the score
            calibration.
        base: Folder, hub id or package of an encoder, see `resolve_base`.
        out: Gets, in place of an older model, the new one, `training_report.json` and, where the
            dev files suffice for it, the score calibration fitted on them.
        recipe: Hyper-parameters; the same ones on the same kind of machine give the same model.
        resume: Go on with a run for `out` that was stopped, after the last epoch that it ended.
        show_progress: Whether to draw progress bars.
        tell: Told of doubtful data, of each epoch, and of what could not be calibrated.

    Raises:
        BadPairsFile: A file cannot be used.
        BaseWeightsMissing: The base was found nowhere.
        ExportError: The base, the recipe and the pairs do not fit, or a stopped run is in the way.
    """
    train_pairs = {
        str(path): read_pairs(path, max_grade=recipe.max_grade, tell=tell) for path in train_files
    }
    if contradicted := contradictions_between(train_pairs):
        tell(f"warning: {contradicted}")
    pairs = [pair for own in train_pairs.values() for pair in own]
    dev = {path.name: read_pairs(path, max_grade=recipe.max_grade, tell=tell) for path in dev_files}
    refuse_unusable(train_pairs, dev, recipe)
    mined = _hard_negatives(pairs, dev, recipe)
    labels = label_names(recipe, [*pairs, *mined])
    base_folder = resolve_base(base)
    base_sha256 = weights_sha256(base_folder)
    tokenizer = AutoTokenizer.from_pretrained(base_folder)
    started_s = time.monotonic()
    run = run_folder(out)
    facts = {
        "recipe": asdict(recipe),
        "base weights": base_sha256,
        "training files": [sha256_of(path) for path in train_files],
        "dev files": [sha256_of(path) for path in dev_files],
    }
    open_run(run, facts, resume=resume)
    set_seed(recipe.seed)
    task = Task(base_folder, tokenizer, labels, [*pairs, *mined], dev, recipe, show_progress, tell)
    model, epochs = train(task, run)
    training_s = time.monotonic() - started_s
    partial = partial_folder(out)
    if recipe.approach == "lora":
        stated = AdapterFacts(base, base_sha256, recipe.ad_template, recipe.max_pair_tokens, labels)
        save_adapter(model, partial, stated)
        written = load_adapted(partial, str(base_folder), out.name)
    else:
        save_checkpoint(model, tokenizer, partial, recipe.max_pair_tokens)
        written = load_checkpoint(str(partial), None, out.name)
    del model
    margins = {name: held_out_margins(written, own) for name, own in dev.items()}
    quality = {name: judge(own, sigmoid(margins[name])) for name, own in dev.items()}
    report = FinetuneReport(
        recipe=recipe,
        n_training_pairs=len(pairs) + len(mined),
        n_hard_negatives=len(mined),
        labels=labels,
        epochs=tuple(epochs),
        kept_epoch=_kept(epochs, recipe),
        training_s=round(training_s, 1),
        quality=quality,
        learnt_nothing=_learnt_nothing(quality, dev, recipe),
    )
    write_report(partial, REPORT_FILE, report)
    if report.learnt_nothing:
        tell(f"warning: {report.learnt_nothing}")
    write_calibration(partial, margins, dev, tell)
    move_into(partial, out)
    close_run(run)
    return report


def _hard_negatives(
    pairs: Sequence[LabelledPair],
    dev: Mapping[str, Sequence[LabelledPair]],
    recipe: FinetuneRecipe,
) -> list[LabelledPair]:
    if not recipe.hard_negatives:
        return []
    held_out = {pair.query for own in dev.values() for pair in own}
    return mine_hard_negatives(pairs, recipe.hard_negatives, held_out, recipe.ad_template)


def _learnt_nothing(
    quality: Mapping[str, Quality],
    dev: Mapping[str, Sequence[LabelledPair]],
    recipe: FinetuneRecipe,
) -> str | None:
    """By the figure that the loss is about."""
    figure = deciding_figure(recipe)
    by_chance = {name: judge(own, np.full(len(own), 0.5)) for name, own in dev.items()}
    return nothing_learnt(mean_figure(quality, figure), mean_figure(by_chance, figure), figure)


def _kept(epochs: Sequence[Mapping[str, Any]], recipe: FinetuneRecipe) -> float:
    """The number of the epoch; of equally good ones the first."""
    kept = max(epochs, key=lambda epoch: epoch[FIGURE]) if recipe.keep == "best" else epochs[-1]
    return float(kept["epoch"])
