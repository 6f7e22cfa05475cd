"""One run of transformers' Trainer over rows, shared by every approach, head and loss.

Not sentence-transformers' trainer: that one tokenizes inside its losses, by its own rule of what
is cut, and cannot put pairs of like length together.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    EarlyStoppingCallback,
    PrinterCallback,
    ProgressCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from model_export.errors import ExportError
from model_export.finetuning.run_folder import last_whole_checkpoint
from model_export.training_rows import Row

FIGURE = "figure"
"""Name of the number in a judgement that decides which epoch is the best; higher is better."""

Judge = Callable[[Any, float], Mapping[str, Any]]
"""What is said of a model after an epoch: `FIGURE`, and `quality`, which JSON can hold."""


@dataclass(frozen=True, slots=True)
class TargetRow:
    """A pair of texts with the probability of relevance that the model shall learn."""

    query: str
    ad_text: str
    target: float


@dataclass(frozen=True, slots=True)
class StageSettings:
    """Hyper-parameters of one run of the Trainer (AdamW, linear warm-up, linear decay).

    Attributes:
        epochs: Passes over the rows.
        learning_rate: Peak, after the warm-up.
        batch_items: Rows, or lists of rows, per optimizer step.
        warmup_share: Part of the steps in which the learning rate grows.
        weight_decay: AdamW's.
        seed: For the order of the rows and for dropout.
        patience: Epochs without a better one after which training ends; 0 never.
        keep_best: Whether the model ends as it was after its best epoch.
        by_length: Whether rows of like length share a batch: padding them to a common width would
            double the time.
        show_progress: Whether to draw a progress bar.
    """

    epochs: int
    learning_rate: float
    batch_items: int
    warmup_share: float
    weight_decay: float
    seed: int
    patience: int = 0
    keep_best: bool = False
    by_length: bool = True
    show_progress: bool = True


def train_stage(
    model: Any,  # noqa: ANN401  # untyped library
    rows: Sequence[Row | list[Row]],
    collate: Callable[..., dict[str, torch.Tensor]],
    loss: Callable[..., torch.Tensor],
    settings: StageSettings,
    folder: Path,
    *,
    judge: Judge | None = None,
) -> list[dict[str, Any]]:
    """Train the unfrozen weights of `model` in place, from where `folder` left off.

    Args:
        model: Takes the collated inputs, gives a mapping with `logits`.
        rows: What to learn.
        collate: Rows -> batch with `labels`.
        loss: (outputs, labels, number of items) -> scalar.
        settings: Hyper-parameters.
        folder: Gets a checkpoint after each epoch. One that has some is gone on with.
        judge: Asked after each epoch.

    Returns:
        For each epoch `epoch`, `loss` (mean over its steps) and what `judge` said.

    Raises:
        ExportError: The loss became infinite or no number.
    """
    is_judged = judge is not None
    arguments = TrainingArguments(
        **common_arguments(folder, settings),
        eval_strategy="epoch" if is_judged else "no",
        save_strategy="epoch",
        save_total_limit=1,  # besides the best
        load_best_model_at_end=is_judged and settings.keep_best,
        metric_for_best_model=FIGURE if is_judged else None,
        greater_is_better=True if is_judged else None,
        restore_callback_states_from_checkpoint=True,
        logging_strategy="epoch",
        logging_nan_inf_filter=False,
    )
    stopping: list[TrainerCallback] = (
        [EarlyStoppingCallback(settings.patience)] if settings.patience else []
    )
    trainer = _Trainer(
        model=model,
        args=arguments,
        train_dataset=rows,
        eval_dataset=rows if is_judged else None,  # asked for, and left to `judge`
        data_collator=collate,
        compute_loss_func=loss,
        callbacks=stopping,
        judge=judge,
    )
    train_from_last_state(trainer, folder)
    return _epochs(trainer.state.log_history)


def train_from_last_state(trainer: Trainer, folder: Path) -> None:
    """Train to the end, from the newest whole checkpoint in the Trainer's folder if it has one."""
    last = last_whole_checkpoint(folder)
    with warnings.catch_warnings():  # of checkpoints written within a second: numbers order them
        warnings.filterwarnings("ignore", "mtime may not be reliable", UserWarning)
        trainer.train(resume_from_checkpoint=None if last is None else str(last))


def common_arguments(folder: Path, settings: StageSettings) -> dict[str, Any]:
    """Of `TrainingArguments`, those that every training here has.

    Args:
        folder: For what the Trainer writes.
        settings: Hyper-parameters.
    """
    return {
        "output_dir": str(folder),
        "num_train_epochs": settings.epochs,
        "learning_rate": settings.learning_rate,
        "per_device_train_batch_size": settings.batch_items,
        "warmup_ratio": settings.warmup_share,
        "weight_decay": settings.weight_decay,
        "lr_scheduler_type": "linear",
        "seed": settings.seed,
        "use_cpu": not torch.cuda.is_available(),
        "bf16": has_fast_bf16(),
        "group_by_length": settings.by_length,
        "label_names": ["labels"],  # a PEFT model hides the signature that they are guessed from
        "remove_unused_columns": False,
        "dataloader_pin_memory": torch.cuda.is_available(),
        "report_to": [],
        "disable_tqdm": not settings.show_progress,
    }


def has_fast_bf16() -> bool:
    """Whether mixed precision pays here: a GPU with bfloat16, or a CPU with AMX tiles.

    Measured with this model on 2 cores of an Intel Xeon with AMX, 32 pairs x 64 tokens: one
    training step takes 0.36 s in bfloat16 and 0.75 s in fp32 (run of 2026-11-30).
    """
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported())
    amx_is_supported = getattr(torch.cpu, "_is_amx_tile_supported", None)  # no public name for it
    return bool(amx_is_supported and amx_is_supported())


def _epochs(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One entry for each epoch, of the Trainer's two: its loss, and what was judged."""
    epochs: dict[float, dict[str, Any]] = {}
    for entry in history:
        kept = {k.removeprefix("eval_"): v for k, v in entry.items() if k in _KEPT}
        if kept:
            number = round(float(entry["epoch"]), 2)
            epochs.setdefault(number, {"epoch": number}).update(kept)
    return list(epochs.values())


_KEPT = ("loss", f"eval_{FIGURE}", "eval_quality")


class _Trainer(Trainer):
    """Evaluates by a judge of ours, and prints no dictionaries."""

    def __init__(self, *, judge: Judge | None, **arguments: Any) -> None:  # noqa: ANN401  # theirs
        super().__init__(**arguments)
        self._judge = judge
        self.remove_callback(PrinterCallback)
        self.remove_callback(ProgressCallback)
        if not self.args.disable_tqdm:
            self.add_callback(_Bar())

    def evaluate(self, *_: object, **__: object) -> dict[str, Any]:
        if self._judge is None:
            return {}
        epoch = round(float(self.state.epoch or 0), 2)
        with _unmixed(self.model):
            said = {f"eval_{name}": value for name, value in self._judge(self.model, epoch).items()}
        self.log(said)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, said)
        return said

    def log(self, logs: dict[str, Any], start_time: float | None = None) -> None:
        loss = logs.get("loss")
        if loss is not None and not abs(loss) < float("inf"):
            raise ExportError(
                f"the loss became {loss} in epoch {self.state.epoch:.0f}: take a lower learning "
                f"rate than {self.args.learning_rate}"
            )
        super().log(logs, start_time)


@contextlib.contextmanager
def _unmixed(model: Any) -> Iterator[None]:  # noqa: ANN401  # untyped library
    """The model in full precision, as it will be written and judged.

    accelerate lays its mixed-precision `forward` over the class's own, on the instance.
    """
    mixed = model.__dict__.pop("forward", None)
    try:
        yield
    finally:
        if mixed is not None:
            model.forward = mixed


class _Bar(ProgressCallback):
    """The bar alone: what is logged stands in the report."""

    def on_log(self, *_: object, **__: object) -> None:
        pass
