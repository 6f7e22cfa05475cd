from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertModel

from model_export.errors import UnsupportedCheckpoint
from model_export.finetuning.models import make_model
from model_export.recipe import recipe_for
from tests.model_export.tiny_bert import write_tiny_base
from tests.tiny_models import write_model

if TYPE_CHECKING:
    from pathlib import Path

    from model_export.recipe import Approach


def write_base_without(folder: Path, part: str) -> Path:
    """A base that lacks the weights with `part` in their names."""
    write_tiny_base(folder)
    weights = load_file(folder / "model.safetensors")
    kept = {name: value for name, value in weights.items() if part not in name}
    assert len(kept) < len(weights)
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def test_an_adapter_needs_the_pooler_of_its_base_and_others_do_not(tmp_path: Path) -> None:
    base = write_base_without(tmp_path / "base", "pooler")
    with pytest.raises(UnsupportedCheckpoint, match="base model base has no pooler"):
        make_model(base, recipe_for("lora"), ())
    whole = make_model(base, recipe_for("full"), ())
    assert whole.bert.pooler is not None
    make_model(base, recipe_for("features"), ())


@pytest.mark.parametrize("approach", ["lora", "full", "features"])
def test_a_base_with_a_layer_missing_is_refused(tmp_path: Path, approach: Approach) -> None:
    base = write_base_without(tmp_path / "base", "layer.1.output.dense")
    with pytest.raises(UnsupportedCheckpoint, match=r"^base model base .*layer\.1\.output\.dense"):
        make_model(base, recipe_for(approach), ())


def test_the_heads_of_other_families_are_new(tmp_path: Path) -> None:
    for family in ("roberta", "distilbert", "electra", "modernbert"):
        folder = write_model(tmp_path / family, family)
        weights = load_file(folder / "model.safetensors")
        heads = ("classifier.", "pre_classifier.", "head.")
        kept = {name: value for name, value in weights.items() if not name.startswith(heads)}
        assert len(kept) < len(weights)
        save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
        assert make_model(folder, recipe_for("full"), ()).config.num_labels == 1


def test_the_encoder_is_that_of_the_base(tmp_path: Path) -> None:
    base = write_tiny_base(tmp_path / "base")
    model = make_model(base, recipe_for("lora"), ("bad", "fair", "good"))
    assert model.config.id2label == {0: "bad", 1: "fair", 2: "good"}
    for name, value in BertModel.from_pretrained(base).state_dict().items():
        assert torch.equal(model.bert.state_dict()[name], value)
