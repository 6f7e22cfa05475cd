"""One run of transformers' Trainer, in which a student learns the log-odds of its teacher."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import nn
from torch.utils.data import DataLoader
from transformers import (
    DataCollatorWithPadding,
    EvalPrediction,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from model_export.checkpoint import Checkpoint
from model_export.distillation.loss import UNKNOWN, distillation_loss, hidden_loss
from model_export.distillation.pair_sampling import Texts
from model_export.distillation.recipe import DistilRecipe
from model_export.evaluate import Quality, judge
from model_export.pairs import LabelledPair
from model_export.reference_logits import pair_encoder
from model_export.to_onnx import takes_segments
from model_export.training import has_fast_bf16
from model_export.training_rows import Row, encode_pairs, to_rows
from service.scoring.calibration import sigmoid
from service.scoring.head import margin

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

    with tempfile.TemporaryDirectory() as scratch:  # the Trainer insists on a folder
        arguments = TrainingArguments(
            output_dir=scratch,
            num_train_epochs=recipe.epochs,
            learning_rate=recipe.learning_rate,
            per_device_train_batch_size=recipe.batch_pairs,
            per_device_eval_batch_size=EVAL_BATCH_PAIRS,
            warmup_ratio=recipe.warmup_share,
            weight_decay=recipe.weight_decay,
            lr_scheduler_type="linear",
            seed=recipe.seed,
            use_cpu=not torch.cuda.is_available(),
            bf16=has_fast_bf16(),
            group_by_length=True,
            label_names=["labels"],
            remove_unused_columns=False,
            dataloader_pin_memory=torch.cuda.is_available(),
            eval_strategy="epoch",
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=not show_progress,
        )
        trainer = _Trainer(
            teacher=teacher,
            recipe=recipe,
            model=model,
            args=arguments,
            train_dataset=train_set,
            eval_dataset=dev_set,
            data_collator=DataCollatorWithPadding(teacher.tokenizer),
            compute_metrics=judge_dev,
            callbacks=[_EachEpoch(lambda epoch: on_epoch(_whole(model), epoch, dict(judged)))],
        )
        trainer.train()


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


class _Trainer(Trainer):
    """Groups training rows by length, and leaves the dev rows in their order: they are judged."""

    def __init__(self, *, teacher: Checkpoint, recipe: DistilRecipe, **arguments: Any) -> None:  # noqa: ANN401  # theirs
        super().__init__(**arguments)
        self._teacher, self._recipe = teacher, recipe
        self._teacher.model.to(self.args.device)

    def compute_loss(
        self,
        model: Any,  # noqa: ANN401  # theirs
        inputs: dict[str, torch.Tensor],
        return_outputs: bool = False,
        num_items_in_batch: object = None,  # noqa: ARG002  # theirs
    ) -> Any:  # noqa: ANN401  # theirs
        inputs = dict(inputs)
        margins, labels = inputs.pop("labels").unbind(1)
        if not (model.training and self._recipe.hidden_weight):
            outputs = model(**inputs)
            loss = distillation_loss(outputs["logits"], margins, labels, self._recipe.label_weight)
            return (loss, {"loss": loss, "logits": outputs["logits"]}) if return_outputs else loss
        with (
            torch.no_grad(),
            torch.autocast(self.args.device.type, torch.bfloat16, enabled=self.args.bf16),
        ):
            taught = self._teacher.model(**inputs, output_hidden_states=True)
        outputs = model(**inputs, output_hidden_states=True)
        margins = torch.from_numpy(
            margin(taught.logits.float().cpu().numpy(), self._teacher.head)
        ).to(labels)
        states = hidden_loss(
            outputs["hidden_states"], taught.hidden_states, inputs["attention_mask"]
        )
        return self._recipe.hidden_weight * states + distillation_loss(
            outputs["logits"], margins, labels, self._recipe.label_weight
        )

    def get_eval_dataloader(self, eval_dataset: Any = None) -> DataLoader[Any]:  # noqa: ANN401  # theirs
        rows: Any = eval_dataset or self.eval_dataset
        loader: DataLoader[Any] = DataLoader(
            rows,
            batch_size=self.args.per_device_eval_batch_size,
            collate_fn=self.data_collator,
        )
        prepared: DataLoader[Any] = self.accelerator.prepare(loader)
        return prepared


class _EachEpoch(TrainerCallback):
    def __init__(self, tell: Callable[[float], None]) -> None:
        self._tell = tell

    def on_evaluate(
        self,
        args: TrainingArguments,  # noqa: ARG002  # transformers passes them by these names
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002
        **_: object,
    ) -> None:
        self._tell(round(float(state.epoch or 0), 2))


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
