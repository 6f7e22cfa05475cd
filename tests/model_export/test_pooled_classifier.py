from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from model_export.checkpoint import load_checkpoint
from model_export.checkpoint_config import HEAD_FILE, load_config
from model_export.errors import UnsupportedCheckpoint
from model_export.parity import largest_change, logits_in_company
from model_export.pooled_classifier import HEAD_WEIGHTS_FILE, PooledClassifier, load_encoder
from model_export.reference_logits import pair_encoder, reference_logits
from model_export.rowwise_int8 import quantize_rowwise
from model_export.sentence_embedding import Pooling
from model_export.to_onnx import convert
from model_export.token_rows import lay_out_token_rows
from model_export.write_checkpoint import save_checkpoint
from service.scoring.onnx_model import OnnxModel
from tests.tiny_models import WORDS, write_model


def write_pooled(folder: Path, family: str, pooling: Pooling, **fields: object) -> Path:
    base, out = folder / "base", folder / "pooled"
    write_model(base, family, **fields)  # type: ignore[arg-type]  # fields of its config
    config = load_config(str(base))
    config.num_labels = 1
    torch.manual_seed(1)
    model = PooledClassifier(load_encoder(base, config), pooling)
    out.mkdir()
    save_checkpoint(model, AutoTokenizer.from_pretrained(base), out, 32)
    return out


def by_hand(model: PooledClassifier, layers: list[torch.Tensor], n_real: int) -> torch.Tensor:
    """What the definition of each pooling says, for one pair: layers (t, hidden) each."""
    last = layers[-1]
    vectors: dict[Pooling, torch.Tensor] = {
        "cls": last[0],
        "mean": torch.stack([last[token] for token in range(n_real)]).sum(0) / n_real,
        "cat4": torch.cat([states[0] for states in layers[-4:]]),
    }
    return model.head.weight @ vectors[model.pooling] + model.head.bias


@pytest.mark.parametrize("pooling", ["cls", "mean", "cat4"])
def test_the_head_reads_what_the_pooling_says_and_no_padding(
    tmp_path: Path, pooling: Pooling
) -> None:
    folder = write_pooled(tmp_path, "bert", pooling, num_hidden_layers=5)
    model = load_checkpoint(str(folder), None, None).model
    ids = torch.tensor([[2, 7, 3, 8, 3, 0, 0, 0], [2, 9, 3, 8, 10, 11, 12, 3]])
    mask = (ids != 0).long()
    with torch.inference_mode():
        logits = model(ids, mask, torch.zeros_like(ids)).logits
        for row, own in enumerate(logits):
            n_real = int(mask[row].sum())
            states = model.encoder(
                ids[row : row + 1, :n_real], output_hidden_states=True
            ).hidden_states
            expected = by_hand(model, [layer[0] for layer in states], n_real)
            np.testing.assert_allclose(own, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("family", "pooling"),
    [("bert", "mean"), ("bert", "cat4"), ("modernbert", "mean"), ("deberta-v2", "cat4")],
)
def test_int8_keeps_a_pairs_logit_in_any_company(
    tmp_path: Path, family: str, pooling: Pooling
) -> None:
    checkpoint = load_checkpoint(str(write_pooled(tmp_path, family, pooling)), None, None)
    encoder = pair_encoder(checkpoint)
    encoded = [
        encoder.encode(f"red {word}", [" ".join(WORDS[: 1 + number])])[0]
        for number, word in enumerate(WORDS)
    ]
    graph = convert(checkpoint.model, checkpoint.tokenizer)
    lay_out_token_rows(graph)
    quantize_rowwise(graph)
    file = tmp_path / "model.onnx"
    file.write_bytes(graph.SerializeToString())
    served = OnnxModel(file, n_logits=1, pad_id=checkpoint.pad_id)
    alone, companies = logits_in_company(served, encoded, 1)
    assert largest_change(alone, companies) == 0
    np.testing.assert_allclose(alone, reference_logits(checkpoint, encoded), atol=0.05)


def spoil_pooling(folder: Path) -> None:
    (folder / HEAD_FILE).write_text(json.dumps({"pooling": "max"}), encoding="utf-8")


def drop_pooling(folder: Path) -> None:
    (folder / HEAD_FILE).write_text("[]", encoding="utf-8")


def narrow_head(folder: Path) -> None:
    state = load_file(folder / HEAD_WEIGHTS_FILE)
    save_file({**state, "weight": state["weight"][:, :-1].contiguous()}, folder / HEAD_WEIGHTS_FILE)


def drop_head(folder: Path) -> None:
    (folder / HEAD_WEIGHTS_FILE).unlink()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (spoil_pooling, "with the pooling 'max'; known: cls, mean, cat4"),
        (drop_pooling, "without a pooling"),
        (narrow_head, "that is not a head on its encoder: .* size mismatch"),
        (drop_head, "that is not a head on its encoder"),
    ],
)
def test_a_folder_that_does_not_fit_together_is_refused_with_the_reason(
    tmp_path: Path, spoil: Callable[[Path], None], reason: str
) -> None:
    folder = write_pooled(tmp_path, "bert", "mean")
    spoil(folder)
    with pytest.raises(UnsupportedCheckpoint, match=f"checkpoint .*{reason}"):
        load_checkpoint(str(folder), None, None)


def test_the_encoder_is_one_that_transformers_loads_without_a_word(tmp_path: Path) -> None:
    from transformers import AutoModel

    folder = write_pooled(tmp_path, "bert", "mean")
    _, info = AutoModel.from_pretrained(folder, add_pooling_layer=False, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
