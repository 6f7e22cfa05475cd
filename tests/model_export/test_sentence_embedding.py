from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, BertModel

from model_export.errors import UnsupportedCheckpoint
from model_export.sentence_embedding import Pooling, embed_texts, pooled_embeddings
from tests.model_export.tiny_bert import write_tiny_base
from tests.tiny_models import write_model

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = ["red shoes", "lamp", "a long text of unknown words " * 20, "green running shoes"]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_tiny_base(tmp_path / "base")


def test_embeddings_have_unit_length_and_the_encoders_width(base: Path) -> None:
    vectors = embed_texts(base, TEXTS)
    assert vectors.shape == (len(TEXTS), 32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_text_embeds_the_same_alone_and_padded_beside_longer_ones(base: Path) -> None:
    together = embed_texts(base, TEXTS)
    alone = np.concatenate([embed_texts(base, [text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_no_text_gives_no_rows(base: Path) -> None:
    assert embed_texts(base, []).shape == (0, 32)


def test_each_pooling_is_made_of_the_states_that_it_names(base: Path) -> None:
    tokenizer, encoder = AutoTokenizer.from_pretrained(base), BertModel.from_pretrained(base).eval()
    batch = tokenizer("green running shoes", return_tensors="pt")
    with torch.inference_mode():
        layers = encoder(**batch, output_hidden_states=True).hidden_states
    expected: dict[Pooling, torch.Tensor] = {
        "cls": layers[-1][0, 0],
        "mean": layers[-1][0].mean(dim=0),
        "cat4": torch.cat([layers[-2][0, 0], layers[-1][0, 0]]),  # this one has two layers
    }
    vectors = pooled_embeddings(base, TEXTS, ("cls", "mean", "cat4"))
    for pooling, vector in expected.items():
        unit = torch.nn.functional.normalize(vector, dim=0).numpy()
        np.testing.assert_allclose(vectors[pooling][3], unit, atol=1e-5)


def test_a_base_that_is_no_bert_is_refused_not_read_as_one(tmp_path: Path) -> None:
    base = write_model(tmp_path / "base", "roberta")
    with pytest.raises(UnsupportedCheckpoint, match=r"^base model base is of the family roberta"):
        embed_texts(base, TEXTS)


def test_a_base_that_lacks_a_weight_is_refused(base: Path) -> None:
    weights = load_file(base / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, base / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UnsupportedCheckpoint, match=r"^base model base has no weights that fit"):
        embed_texts(base, TEXTS)


def test_nothing_is_said_of_a_pooler_that_embeddings_leave_out(
    base: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert len(embed_texts(base, TEXTS)) == len(TEXTS)
    assert caplog.records == []
