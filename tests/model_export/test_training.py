from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from model_export.errors import ExportError
from model_export.finetuning.run_folder import last_whole_checkpoint
from model_export.training import FIGURE, StageSettings, train_stage

ROWS: list[Any] = [{"x": [float(n % 3), 1.0], "y": float(n % 3 == 2)} for n in range(24)]
SETTINGS = StageSettings(
    epochs=4, learning_rate=0.1, batch_items=8, warmup_share=0.0, weight_decay=0.0, seed=0,
    by_length=False, show_progress=False,
)  # fmt: skip


class Line(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(2, 1)
        nn.init.zeros_(self.map.weight)
        nn.init.zeros_(self.map.bias)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"logits": self.map(x)}


def collate(rows: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    x = torch.tensor([row["x"] for row in rows])
    return {"x": x, "labels": torch.tensor([[row["y"]] for row in rows])}


def squared(outputs: Any, labels: torch.Tensor, num_items_in_batch: object = None) -> torch.Tensor:  # noqa: ANN401, ARG001  # the Trainer's signature
    loss: torch.Tensor = ((outputs["logits"] - labels) ** 2).mean()
    return loss


def infinite(outputs: Any, labels: torch.Tensor, num_items_in_batch: object = None) -> torch.Tensor:  # noqa: ANN401, ARG001  # as above
    return squared(outputs, labels) * float("inf")


def changed(**fields: Any) -> StageSettings:  # noqa: ANN401  # of any type
    return replace(SETTINGS, **fields)


class Judge:
    """Says what it is told to say of each epoch, and keeps the weights that it saw."""

    def __init__(self, *figures: float) -> None:
        self.figures = figures
        self.seen: list[torch.Tensor] = []

    def __call__(self, model: Any, epoch: float) -> Mapping[str, Any]:  # noqa: ANN401  # as theirs
        self.seen.append(model.map.weight.detach().clone())
        return {FIGURE: self.figures[int(epoch) - 1], "quality": {}}


def test_the_loss_falls_and_each_epoch_is_reported(tmp_path: Path) -> None:
    epochs = train_stage(Line(), ROWS, collate, squared, SETTINGS, tmp_path)
    assert [epoch["epoch"] for epoch in epochs] == [1, 2, 3, 4]
    assert epochs[-1]["loss"] < epochs[0]["loss"]


def test_the_model_ends_as_it_was_after_its_best_epoch(tmp_path: Path) -> None:
    for keep_best, number in ((True, 1), (False, 3)):
        judge, model = Judge(0.1, 0.9, 0.3, 0.9), Line()
        epochs = train_stage(
            model, ROWS, collate, squared, changed(keep_best=keep_best),
            tmp_path / str(number), judge=judge,
        )  # fmt: skip
        assert [epoch[FIGURE] for epoch in epochs] == [0.1, 0.9, 0.3, 0.9]
        assert torch.equal(model.map.weight, judge.seen[number])


def test_patience_counts_epochs_without_a_better_one(tmp_path: Path) -> None:
    judge = Judge(0.5, 0.6, 0.6, 0.4)
    settings = changed(keep_best=True, patience=2, epochs=9)
    epochs = train_stage(Line(), ROWS, collate, squared, settings, tmp_path, judge=judge)
    assert len(epochs) == 4


def test_a_stage_goes_on_after_its_last_whole_epoch_and_ends_the_same(tmp_path: Path) -> None:
    figures = (0.1, 0.2, 0.3, 0.4)

    class Stop(Judge):
        def __call__(self, model: Any, epoch: float) -> Mapping[str, Any]:  # noqa: ANN401  # as theirs
            if epoch == 3:
                raise KeyboardInterrupt
            return super().__call__(model, epoch)

    kept = changed(keep_best=True)
    whole, resumed, judge = Line(), Line(), Judge(*figures)
    wanted = train_stage(whole, ROWS, collate, squared, kept, tmp_path / "a", judge=Judge(*figures))
    with pytest.raises(KeyboardInterrupt):
        train_stage(Line(), ROWS, collate, squared, kept, tmp_path / "b", judge=Stop(*figures))
    assert last_whole_checkpoint(tmp_path / "b") == tmp_path / "b" / "checkpoint-6"
    epochs = train_stage(resumed, ROWS, collate, squared, kept, tmp_path / "b", judge=judge)
    assert len(judge.seen) == 2, "only what was missing"
    assert epochs == wanted
    assert torch.equal(resumed.map.weight, whole.map.weight)


def test_a_loss_that_is_no_number_ends_the_training(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"the loss became .* lower learning rate than 0\.1"):
        train_stage(Line(), ROWS, collate, infinite, SETTINGS, tmp_path)
