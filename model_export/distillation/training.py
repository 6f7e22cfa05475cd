"""One run of transformers' Trainer, in which a student learns the log-odds of its teacher."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import nn
from transformers import DataCollatorWithPadding, EvalPrediction, TrainingArguments

from model_export.checkpoint import Checkpoint
from model_export.distillation.loss import UNKNOWN
from model_export.distillation.pair_sampling import Texts
from model_export.distillation.recipe import DistilRecipe
from model_export.distillation.trainer import DistilTrainer, EachEpoch, StateInTime
from model_export.evaluate import Quality, judge
from model_export.pairs import LabelledPair
from model_export.reference_logits import pair_encoder
from model_export.to_onnx import takes_segments
from model_export.training import StageSettings, common_arguments, train_from_last_state
from model_export.training_rows import Row, encode_pairs, to_rows
from service.scoring.calibration import sigmoid

EVAL_BATCH_PAIRS = 64


@dataclass(frozen=True, slots=True)
class DistilRow:
    """A pair of texts with what the student shall learn of it.

    Attributes:
        texts: Query and ad text.
        teacher_margin: The teacher's log-odds of relevance; None where it is asked in training.
        label: Relevance in 0-1 as people judged it; None where nobody did.
    """

    texts: Texts
    teacher_margin: float | None
    label: float | None = None


DevPairs = Mapping[str, Sequence[LabelledPair]]
"""Held-out pairs by the name of their file."""

OnEpoch = Callable[[Any, float, dict[str, Quality]], None]
"""Told of each epoch: the whole student, the epochs done, its quality by dev file."""


def train_student(
    student: Any,  # noqa: ANN401  # untyped library
    teacher: Checkpoint,
    rows: Sequence[DistilRow],
    dev: DevPairs,
    recipe: DistilRecipe,
    folder: Path,
    on_epoch: OnEpoch,
    *,
    show_progress: bool = True,
) -> None:
    """Train the student; what is worth keeping is up to `on_epoch`.

    Rows of like length share a batch: padding them to a common width would double the time.

    Args:
        student: transformers sequence classifier with one logit.
        teacher: Whose tokenizer, ad template and longest pair are the student's too.
        rows: What to learn.
        dev: What to judge it on after each epoch.
        recipe: Hyper-parameters.
        folder: Gets the state of the training after each epoch, and within long ones, see
            `StateInTime`. One that has a state is gone on with, and the student ends as it would
            have without the stop.
        on_epoch: Called after each epoch.
        show_progress: Whether to draw a progress bar.
    """
    model = _trainable(student, recipe)
    train_set = _encode(
        teacher,
        [row.texts for row in rows],
        [(_or_unknown(row.teacher_margin), _or_unknown(row.label)) for row in rows],
    )
    pairs = [pair for part in dev.values() for pair in part]
    render = teacher.template.render
    dev_set = _encode(
        teacher,
        [(pair.query, render(pair.ad)) for pair in pairs],
        [(UNKNOWN, pair.label) for pair in pairs],
    )
    judged: dict[str, Quality] = {}

    def judge_dev(prediction: EvalPrediction) -> dict[str, float]:
        judged.update(_judge(dev, torch.as_tensor(prediction.predictions)))
        return {}

    settings = StageSettings(
        epochs=recipe.epochs,
        learning_rate=recipe.learning_rate,
        batch_items=recipe.batch_pairs,
        warmup_share=recipe.warmup_share,
        weight_decay=recipe.weight_decay,
        seed=recipe.seed,
        show_progress=show_progress,
    )
    arguments = TrainingArguments(
        **common_arguments(folder, settings),
        per_device_eval_batch_size=EVAL_BATCH_PAIRS,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=1,
        logging_strategy="no",
    )
    trainer = DistilTrainer(
        teacher=teacher,
        recipe=recipe,
        model=model,
        args=arguments,
        train_dataset=train_set,
        eval_dataset=dev_set,
        data_collator=DataCollatorWithPadding(teacher.tokenizer),
        compute_metrics=judge_dev,
        callbacks=[
            EachEpoch(lambda epoch: on_epoch(_whole(model), epoch, dict(judged))),
            StateInTime(time.monotonic),
        ],
    )
    train_from_last_state(trainer, folder)


def _trainable(student: Any, recipe: DistilRecipe) -> Any:  # noqa: ANN401  # untyped library
    """The student with those of its weights unfrozen, or given adapters, that shall learn."""
    embeddings = student.base_model.embeddings  # of words, places and segments
    if recipe.lora_rank:
        config = LoraConfig(
            r=recipe.lora_rank,
            lora_alpha=2 * recipe.lora_rank,  # as in the default model
            target_modules="all-linear",
            task_type="SEQ_CLS",
        )
        student = get_peft_model(student, config)
    embeddings.requires_grad_(recipe.train_embeddings)
    _stop_dropout(student)
    return student


def _stop_dropout(model: nn.Module) -> None:
    """Dropout guards against learning few labels by heart; a teacher's answers are exact."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if hasattr(module, "dropout_prob"):  # attentions pass it on to a function
            setattr(module, "dropout_prob", 0.0)  # noqa: B010  # no attribute that types know of


def _or_unknown(value: float | None) -> float:
    return UNKNOWN if value is None else value


def _whole(model: Any) -> Any:  # noqa: ANN401  # untyped library
    """The model as one checkpoint: with its adapters, if there are any, merged into a copy."""
    if isinstance(model, PeftModel):
        return copy.deepcopy(model).merge_and_unload()
    return model


def _judge(dev: DevPairs, logits: torch.Tensor) -> dict[str, Quality]:
    margins = logits[:, 0].double().numpy()
    quality, start = {}, 0
    for name, pairs in dev.items():
        quality[name] = judge(pairs, sigmoid(margins[start : start + len(pairs)]))
        start += len(pairs)
    return quality


def _encode(
    teacher: Checkpoint, texts: Sequence[Texts], targets: Sequence[tuple[float, float]]
) -> list[Row]:
    return to_rows(
        encode_pairs(pair_encoder(teacher), texts),
        targets,
        with_segments=takes_segments(teacher.model, teacher.tokenizer),
    )
