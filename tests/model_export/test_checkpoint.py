from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    CanineTokenizer,
    RobertaConfig,
)

from model_export.checkpoint import (
    CALIBRATION_FILE,
    DEFAULT_MAX_LENGTH_TOKENS,
    load_checkpoint,
    longest_pair,
    read_head,
    with_max_length,
)
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
    assert read_head(labels("LABEL_0", "LABEL_1"), "LABEL_1").relevant_index == 1


def test_a_label_that_looks_like_an_index_is_still_that_label() -> None:
    assert read_head(labels("1", "0"), "1").relevant_index == 0
    assert read_head(labels("1", "0"), "0").relevant_index == 1


def test_one_logit_needs_no_names() -> None:
    assert read_head(labels("LABEL_0"), None).kind == "binary"


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
    assert with_max_length(checkpoint, MAX_POSITIONS).max_length_tokens == MAX_POSITIONS
    with pytest.raises(UnsupportedCheckpoint, match="7 is outside 8"):
        with_max_length(checkpoint, 7)
    with pytest.raises(UnsupportedCheckpoint, match=f"65 is outside 8-{MAX_POSITIONS}"):
        with_max_length(checkpoint, 65)


class UnlimitedTokenizer:
    model_max_length = 10**30  # what transformers says when nobody set a limit


def test_the_positions_that_roberta_reserves_are_not_for_tokens() -> None:
    config = RobertaConfig(max_position_embeddings=514, pad_token_id=1)
    assert longest_pair(config, UnlimitedTokenizer()) == 512


def test_a_model_for_long_texts_still_gets_short_pairs_unless_asked(tmp_path: Path) -> None:
    write_bert(tmp_path)
    for file, key in (("config", "max_position_embeddings"), ("tokenizer_config", "")):
        path = tmp_path / f"{file}.json"
        fields = json.loads(path.read_text(encoding="utf-8"))
        fields[key or "model_max_length"] = 512
        path.write_text(json.dumps(fields), encoding="utf-8")
    BertForSequenceClassification(BertConfig.from_pretrained(tmp_path)).save_pretrained(tmp_path)
    checkpoint = load_checkpoint(str(tmp_path), None, None)
    assert checkpoint.max_length_tokens == DEFAULT_MAX_LENGTH_TOKENS
    assert with_max_length(checkpoint, 512).max_length_tokens == 512


def test_half_precision_weights_are_loaded_for_reference_in_fp32_and_in_eval_mode(
    tmp_path: Path,
) -> None:
    write_bert(tmp_path)
    BertForSequenceClassification.from_pretrained(tmp_path).half().save_pretrained(tmp_path)
    model = load_checkpoint(str(tmp_path), None, None).model
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert not model.training


def test_a_calibration_stored_beside_the_weights_comes_along(tmp_path: Path) -> None:
    write_bert(tmp_path)
    file = tmp_path / CALIBRATION_FILE
    file.write_text('{"slope": 0.5, "intercept": -1, "fitted_on": "dev"}', encoding="utf-8")
    calibration = load_checkpoint(str(tmp_path), None, None).calibration
    assert calibration is not None
    assert (calibration.slope, calibration.intercept) == (0.5, -1)
    file.write_text('{"slope": -2}', encoding="utf-8")
    with pytest.raises(UnsupportedCheckpoint, match="is not a score calibration"):
        load_checkpoint(str(tmp_path), None, None)


def without_tokenizer(folder: Path) -> Path:
    write_bert(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        (folder / name).unlink()
    return folder


def test_a_tokenizer_written_in_python_is_refused(tmp_path: Path) -> None:
    CanineTokenizer().save_pretrained(without_tokenizer(tmp_path / "slow"))
    with pytest.raises(UnsupportedCheckpoint, match="no fast tokenizer"):
        load_checkpoint(str(tmp_path / "slow"), None, None)


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedCheckpoint, match="cannot be loaded"):
        load_checkpoint(str(without_tokenizer(tmp_path / "bare")), None, None)


def test_a_tokenizer_file_that_is_none_is_refused(tmp_path: Path) -> None:
    write_bert(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(UnsupportedCheckpoint, match="cannot be loaded"):
        load_checkpoint(str(tmp_path), None, None)


@pytest.mark.parametrize("content", [b"version https://git-lfs.github.com/spec/v1\n", b""])
def test_weights_that_were_not_downloaded_are_refused(tmp_path: Path, content: bytes) -> None:
    write_bert(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(UnsupportedCheckpoint, match="cannot be loaded"):
        load_checkpoint(str(tmp_path), None, None)


def test_a_head_of_another_size_than_its_config_says_is_refused(tmp_path: Path) -> None:
    write_bert(tmp_path, n_labels=1)
    BertConfig.from_pretrained(tmp_path, num_labels=3).save_pretrained(tmp_path)
    with pytest.raises(UnsupportedCheckpoint, match="cannot be loaded"):
        load_checkpoint(str(tmp_path), None, None)
