from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model_export.checkpoint import load_checkpoint
from model_export.distillation.recipe import DistilRecipe
from model_export.distillation.student import make_student
from model_export.distillation.teacher_logits import teacher_margins
from model_export.distillation.training import DistilRow, train_student
from model_export.evaluate import Quality
from model_export.pairs import LabelledPair
from model_export.reference_logits import pair_encoder
from service.domain import Ad
from tests.tiny_models import WORDS, write_bert


@pytest.mark.parametrize(
    "how",
    [{}, {"lora_rank": 8}, {"hidden_weight": 1.0}],
    ids=["whole", "low rank", "hidden states"],
)
def test_the_student_comes_nearer_to_its_teacher(tmp_path: Path, how: dict[str, Any]) -> None:
    folder = write_bert(tmp_path / "teacher", num_hidden_layers=4)
    teacher = load_checkpoint(str(folder), None, None)
    texts = [("red", f"{WORDS[n % 15]} {WORDS[(7 * n + 3) % 15]}") for n in range(30)]
    wanted = teacher_margins(teacher, texts, tmp_path)
    asked_in_training = "hidden_weight" in how
    rows = [
        DistilRow(pair, None if asked_in_training else float(value))
        for pair, value in zip(texts, wanted, strict=True)
    ]
    dev = {"dev": [LabelledPair("bag", Ad("1", text=ad), n % 2) for n, (_, ad) in enumerate(texts)]}
    recipe = DistilRecipe(epochs=15, learning_rate=5e-3, batch_pairs=8, **how)
    torch.manual_seed(0)
    student = make_student(teacher.model, (0, 3))
    encoder = pair_encoder(teacher)

    def distance(model: Any) -> float:  # noqa: ANN401
        model.eval()
        off = []
        for (query, ad), value in zip(texts, wanted, strict=True):
            (pair,) = encoder.encode(query, [ad])
            ids, types = (torch.from_numpy(row)[None] for row in (pair.ids, pair.type_ids))
            with torch.inference_mode():
                off.append(model(input_ids=ids, token_type_ids=types).logits.item() - value)
        return float(np.abs(off).mean())

    before = distance(copy.deepcopy(student))
    after: list[float] = []

    def on_epoch(model: Any, epoch: float, quality: dict[str, Quality]) -> None:  # noqa: ANN401
        assert set(quality) == {"dev"}
        if epoch == recipe.epochs:
            after.append(distance(copy.deepcopy(model)))

    folder = tmp_path / "run"
    train_student(student, teacher, rows, dev, recipe, folder, on_epoch, show_progress=False)
    assert len(after) == 1
    assert after[0] < 0.4 * before
