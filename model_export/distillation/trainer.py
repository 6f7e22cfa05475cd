"""transformers' Trainer with the loss of a distillation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import DataLoader
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_pt_utils import LengthGroupedSampler

from model_export.checkpoint import Checkpoint
from model_export.distillation.loss import distillation_loss, hidden_loss
from model_export.distillation.recipe import DistilRecipe
from service.scoring.head import margin

STATE_EVERY_S = 300.0
"""A stop costs at most so much; writing the state of a student takes a second or two."""


class DistilTrainer(Trainer):
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
        """How far the student is from its teacher on a batch."""
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

    def _get_train_sampler(self, train_dataset: Any = None) -> LengthGroupedSampler:  # noqa: ANN401  # theirs
        rows = self.train_dataset if train_dataset is None else train_dataset
        return _OrderOfEpoch(rows, self.args.train_batch_size, self.args.seed)

    def get_eval_dataloader(self, eval_dataset: Any = None) -> DataLoader[Any]:  # noqa: ANN401  # theirs
        """The dev rows in their order, which the Trainer's grouping by length would change."""
        rows: Any = eval_dataset or self.eval_dataset
        loader: DataLoader[Any] = DataLoader(
            rows,
            batch_size=self.args.per_device_eval_batch_size,
            collate_fn=self.data_collator,
        )
        prepared: DataLoader[Any] = self.accelerator.prepare(loader)
        return prepared


class EachEpoch(TrainerCallback):
    """Tells how many epochs are done, each time the student has been judged."""

    def __init__(self, tell: Callable[[float], None]) -> None:
        self._tell = tell

    def on_evaluate(
        self,
        args: TrainingArguments,  # noqa: ARG002  # transformers passes them by these names
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002
        **_: object,
    ) -> None:
        """An epoch is done."""
        self._tell(round(float(state.epoch or 0), 2))


class StateInTime(TrainerCallback):
    """Has the Trainer write its state every `STATE_EVERY_S` in an epoch, which can take hours."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._written_s = clock()

    def on_step_end(
        self,
        args: TrainingArguments,  # transformers passes them by these names
        state: TrainerState,
        control: TrainerControl,
        **_: object,
    ) -> None:
        """A step is done."""
        # The state at an epoch's end is written once the student has been judged, or a run that is
        # stopped between the two would never judge it.
        steps_per_epoch = state.max_steps // round(args.num_train_epochs)
        is_due = self._clock() - self._written_s >= STATE_EVERY_S
        if is_due and state.global_step % steps_per_epoch:
            self._written_s = self._clock()
            control.should_save = True


class _OrderOfEpoch(LengthGroupedSampler):
    """Rows by length, in an order that depends on seed and epoch alone.

    The Trainer's own order comes from torch's random state, which is another one where a run goes
    on in the middle of an epoch.
    """

    def __init__(self, rows: Any, batch_items: int, seed: int) -> None:  # noqa: ANN401  # theirs
        super().__init__(batch_items, dataset=rows, generator=torch.Generator())
        self._seed = seed
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Called by accelerate before each pass."""
        self.generator.manual_seed((self._seed << 20) + epoch)
