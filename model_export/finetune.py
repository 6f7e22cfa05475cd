"""The recipe of the default model: from files of labelled pairs to an adapter with its figures.

Two stages, both LoRA on a frozen base: first imitate the base's own sentence similarity on many
unjudged pairs, then learn the human labels. `similarity_teacher` says why.
"""

from __future__ import annotations

import json
import logging
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import (
    AutoTokenizer,
    BertForSequenceClassification,
    PreTrainedTokenizerBase,
    set_seed,
)

from model_export.adapter import AdapterFacts, load_merged, save_adapter
from model_export.base_weights import resolve_base, weights_sha256
from model_export.checkpoint import CALIBRATION_FILE
from model_export.errors import ExportError
from model_export.evaluate import Quality, judge
from model_export.fit_calibration import fit_score_calibration
from model_export.pairs import LabelledPair, read_pairs
from model_export.recipe import FinetuneRecipe, human_target
from model_export.similarity_teacher import SimilarityTeacher
from model_export.training import LOSS_KIND, StageSettings, TargetRow, logits_of_rows, train_stage
from service.scoring.calibration import sigmoid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

REPORT_FILE = "training_report.json"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FinetuneReport:
    """What was trained, how long it took and how good it is (scores without calibration)."""

    recipe: FinetuneRecipe
    n_training_pairs: int
    training_s: float
    quality: dict[str, Quality]
    """By name of the dev file; measured on the fp16 adapter as read back from disk."""


def finetune(
    train: Sequence[Path],
    dev: Sequence[Path],
    base: str,
    out: Path,
    recipe: FinetuneRecipe,
    *,
    show_progress: bool = True,
) -> FinetuneReport:
    """Train an adapter for `base`, write it to the folder `out`, and judge what was written.

    Args:
        train: Files of labelled pairs, see `read_pairs`.
        dev: Files of held-out pairs; they decide nothing but the score
            calibration.
        base: Folder, hub id or package of a BERT encoder, see `resolve_base`.
        out: Gets the adapter, `training_report.json` and, where the dev files suffice for
            it, the score calibration fitted on them.
        recipe: Hyper-parameters; the same ones on the same kind of machine give the same adapter.
        show_progress: Whether to draw progress bars.

    Raises:
        BadPairsFile: A file cannot be used.
        BaseWeightsMissing: The base was found nowhere.
    """
    training_pairs = [pair for path in train for pair in read_pairs(path)]
    dev_pairs = {path.name: read_pairs(path) for path in dev}
    base_folder = resolve_base(base)
    facts = AdapterFacts(
        base, weights_sha256(base_folder), recipe.ad_template, recipe.max_pair_tokens
    )
    started_s = time.monotonic()
    tokenizer = AutoTokenizer.from_pretrained(base_folder)
    model = _train(training_pairs, base_folder, tokenizer, recipe, show_progress)
    training_s = time.monotonic() - started_s
    save_adapter(model, out, facts)

    written = load_merged(out, str(base_folder))
    margins = {
        name: logits_of_rows(written, tokenizer, _to_rows(pairs, recipe), recipe.max_pair_tokens)
        for name, pairs in dev_pairs.items()
    }
    report = FinetuneReport(
        recipe=recipe,
        n_training_pairs=len(training_pairs),
        training_s=round(training_s, 1),
        quality={name: judge(pairs, sigmoid(margins[name])) for name, pairs in dev_pairs.items()},
    )
    text = json.dumps(asdict(report), indent=2, allow_nan=False)
    (out / REPORT_FILE).write_text(text + "\n", encoding="utf-8")
    _write_calibration(out, margins, dev_pairs)
    return report


def _train(
    pairs: Sequence[LabelledPair],
    base: Path,
    tokenizer: PreTrainedTokenizerBase,
    recipe: FinetuneRecipe,
    show_progress: bool,
) -> PeftModel:
    set_seed(recipe.seed)
    model = _with_lora(base, recipe)
    rows = _to_rows(pairs, recipe)
    if recipe.imitation_pairs or recipe.teacher_share:
        teacher = SimilarityTeacher(base, rows, show_progress=show_progress)
        rows = teacher.blend_into(rows, recipe.teacher_share)
    if recipe.imitation_pairs:
        imitation_rows = teacher.make_rows(
            recipe.imitation_pairs,
            recipe.imitation_pairs_per_query,
            recipe.pseudo_query_share,
            recipe.seed,
        )
        settings = _stage(recipe, 1, recipe.imitation_learning_rate, show_progress)
        train_stage(model, tokenizer, imitation_rows, settings)
    train_stage(
        model, tokenizer, rows, _stage(recipe, recipe.epochs, recipe.learning_rate, show_progress)
    )
    return model


def _with_lora(base: Path, recipe: FinetuneRecipe) -> PeftModel:
    model = BertForSequenceClassification.from_pretrained(
        base, num_labels=1, problem_type=LOSS_KIND
    )
    config = LoraConfig(
        r=recipe.lora_rank,
        lora_alpha=recipe.lora_alpha,
        target_modules=["query", "key", "value", "dense"],  # all linear layers of BERT
        modules_to_save=["classifier"],  # starts at random, so a low-rank update of it is no use
        task_type="SEQ_CLS",
    )
    return get_peft_model(model, config)


def _stage(
    recipe: FinetuneRecipe, epochs: int, learning_rate: float, show_progress: bool
) -> StageSettings:
    return StageSettings(
        epochs=epochs,
        learning_rate=learning_rate,
        batch_pairs=recipe.batch_pairs,
        warmup_share=recipe.warmup_share,
        weight_decay=recipe.weight_decay,
        max_pair_tokens=recipe.max_pair_tokens,
        seed=recipe.seed,
        show_progress=show_progress,
    )


def _to_rows(pairs: Sequence[LabelledPair], recipe: FinetuneRecipe) -> list[TargetRow]:
    render = recipe.ad_template.render
    return [
        TargetRow(pair.query, render(pair.ad), human_target(pair, recipe.rater_share))
        for pair in pairs
    ]


def _write_calibration(
    out: Path,
    margins: Mapping[str, NDArray[np.float64]],
    pairs_by_file: Mapping[str, Sequence[LabelledPair]],
) -> None:
    labels = [pair.label for name in margins for pair in pairs_by_file[name]]
    try:
        calibration = fit_score_calibration(
            np.concatenate(list(margins.values())),
            labels,
            [pair.query for name in margins for pair in pairs_by_file[name]],
            " + ".join(margins),
        ).calibration
    except ExportError as error:  # too few pairs, say: the adapter is good without
        log.warning("scores stay uncalibrated: %s", error)
        return
    text = calibration.model_dump_json(indent=2)
    (out / CALIBRATION_FILE).write_text(text + "\n", encoding="utf-8")
