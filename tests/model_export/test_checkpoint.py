from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, BertModel

from model_export.checkpoint import load_checkpoint, read_head, with_max_length
from model_export.errors import UnsupportedCheckpoint
from tests.tiny_models import MAX_POSITIONS, write_bert, write_tokenizer


def test_a_folder_with_a_classifier_loads_with_all_its_facts(tiny_checkpoint: Path) -> None:
    checkpoint = load_checkpoint(str(tiny_checkpoint), None, None)
    assert checkpoint.name == checkpoint.source == tiny_checkpoint.name
    assert checkpoint.max_length_tokens == MAX_POSITIONS
    assert checkpoint.head.n_logits == 1
    assert checkpoint.calibration is None
    again = load_checkpoint(str(tiny_checkpoint), None, "other name")
    assert again.source_sha256 == checkpoint.source_sha256
    assert again.name == "other name"


def test_other_weights_have_another_hash(tiny_checkpoint: Path, tmp_path: Path) -> None:
    other = load_checkpoint(str(write_bert(tmp_path / "other", seed=1)), None, None)
    assert other.source_sha256 != load_checkpoint(str(tiny_checkpoint), None, None).source_sha256


def labels(*names: str) -> BertConfig:
    return BertConfig(num_labels=len(names), id2label=dict(enumerate(names)))


def test_the_relevant_one_of_two_classes_comes_from_its_name_or_from_the_user() -> None:
    assert read_head(labels("Relevant", "irrelevant"), None).relevant_index == 0
    assert read_head(labels("no", "yes"), "yes").relevant_index == 1
    assert read_head(labels("LABEL_0", "LABEL_1"), "0").relevant_index == 0


def test_two_classes_without_a_meaning_are_refused_and_never_guessed() -> None:
    with pytest.raises(UnsupportedCheckpoint, match="--relevant-label"):
        read_head(labels("LABEL_0", "LABEL_1"), None)
    with pytest.raises(UnsupportedCheckpoint, match=r"labels are \['no', 'yes'\]"):
        read_head(labels("no", "yes"), "maybe")


def test_more_classes_are_ordered_grades() -> None:
    head = read_head(labels("bad", "fair", "good"), None)
    assert (head.kind, head.n_logits) == ("ordinal", 3)


def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedCheckpoint, match="cannot be loaded"):
        load_checkpoint(str(tmp_path / "nothing"), None, None)


def test_an_encoder_without_a_trained_head_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "headless"
    folder.mkdir()
    write_tokenizer(folder)
    config = BertConfig(
        vocab_size=99,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
    )
    BertModel(config).save_pretrained(folder)
    with pytest.raises(UnsupportedCheckpoint, match="fine-tune it for sequence classification"):
        load_checkpoint(str(folder), None, None)


def test_pickled_weights_are_never_opened(tmp_path: Path) -> None:
    folder = tmp_path / "pickled"
    write_bert(folder)
    model = BertForSequenceClassification.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(UnsupportedCheckpoint, match="safetensors"):
        load_checkpoint(str(folder), None, None)


def test_a_max_length_that_the_model_has_no_positions_for_is_refused(
    tiny_checkpoint: Path,
) -> None:
    checkpoint = load_checkpoint(str(tiny_checkpoint), None, None)
    assert with_max_length(checkpoint, 32).max_length_tokens == 32
    with pytest.raises(UnsupportedCheckpoint, match=f"65 is outside 8-{MAX_POSITIONS}"):
        with_max_length(checkpoint, 65)
