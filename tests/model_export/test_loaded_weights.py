from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from safetensors.torch import load_file, save_file
from transformers import BertForSequenceClassification, BertModel

from model_export.errors import UnsupportedCheckpoint
from model_export.library_calls import quiet_transformers
from model_export.loaded_weights import refuse_random_weights
from tests.model_export.tiny_bert import write_tiny_base

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from transformers import PreTrainedModel

    LoadingInfo = Mapping[str, Collection[str]]


def loading_info(kind: type[PreTrainedModel], folder: Path, **options: bool | int) -> LoadingInfo:
    with quiet_transformers():
        _, info = kind.from_pretrained(folder, output_loading_info=True, **options)
    return dict(info)


def test_an_encoder_that_is_all_there_is_taken(tmp_path: Path) -> None:
    base = write_tiny_base(tmp_path / "base")
    refuse_random_weights(loading_info(BertModel, base), "base", ())


def test_a_head_may_start_at_random_where_it_is_allowed_to(tmp_path: Path) -> None:
    info = loading_info(BertForSequenceClassification, write_tiny_base(tmp_path / "base"))
    refuse_random_weights(info, "base", ("classifier.",))
    with pytest.raises(
        UnsupportedCheckpoint, match=r"^base has no weights that fit classifier\.bias and 1 more"
    ):
        refuse_random_weights(info, "base", ())


def test_an_encoder_without_one_of_its_weights_is_refused_by_its_name(tmp_path: Path) -> None:
    base = write_tiny_base(tmp_path / "base")
    weights = load_file(base / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, base / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        UnsupportedCheckpoint,
        match=r"^base has no weights that fit encoder\.layer\.1\.output\.dense\.weight, which",
    ):
        refuse_random_weights(loading_info(BertModel, base), "base", ("pooler.",))


def test_a_weight_of_another_shape_counts_as_missing(tmp_path: Path) -> None:
    base = write_tiny_base(tmp_path / "base")
    info = loading_info(BertModel, base, ignore_mismatched_sizes=True, vocab_size=99)
    with pytest.raises(UnsupportedCheckpoint, match=r"embeddings\.word_embeddings\.weight, which"):
        refuse_random_weights(info, "base", ("pooler.",))
