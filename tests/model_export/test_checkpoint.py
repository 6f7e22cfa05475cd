from __future__ import annotations

import json
from pathlib import Path

import pytest
from transformers import BertConfig, BertForSequenceClassification

from model_export.checkpoint import CALIBRATION_FILE, load_checkpoint, with_max_length
from model_export.errors import UnsupportedCheckpoint
from model_export.pair_length import DEFAULT_MAX_LENGTH_TOKENS
from model_export.write_checkpoint import save_checkpoint
from service.scoring.calibration import Temperature
from tests.tiny_models import MAX_POSITIONS, write_bert


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


def test_a_max_length_that_the_model_has_no_positions_for_is_refused(
    tiny_checkpoint: Path,
) -> None:
    checkpoint = load_checkpoint(str(tiny_checkpoint), None, None)
    assert with_max_length(checkpoint, 32).max_length_tokens == 32
    assert with_max_length(checkpoint, MAX_POSITIONS).max_length_tokens == MAX_POSITIONS
    with pytest.raises(UnsupportedCheckpoint, match="7, which is outside 8"):
        with_max_length(checkpoint, 7)
    with pytest.raises(UnsupportedCheckpoint, match=f"65, which is outside 8-{MAX_POSITIONS}"):
        with_max_length(checkpoint, 65)


def write_long_bert(folder: Path) -> None:
    """A classifier with 512 positions, and a tokenizer that says so."""
    write_bert(folder)
    for file, key in (("config", "max_position_embeddings"), ("tokenizer_config", "")):
        path = folder / f"{file}.json"
        fields = json.loads(path.read_text(encoding="utf-8"))
        fields[key or "model_max_length"] = 512
        path.write_text(json.dumps(fields), encoding="utf-8")
    BertForSequenceClassification(BertConfig.from_pretrained(folder)).save_pretrained(folder)


def test_a_model_for_long_texts_still_gets_short_pairs_unless_asked(tmp_path: Path) -> None:
    write_long_bert(tmp_path)
    checkpoint = load_checkpoint(str(tmp_path), None, None)
    assert checkpoint.max_length_tokens == DEFAULT_MAX_LENGTH_TOKENS
    assert "it does not say how long the pairs were" in (checkpoint.length_note or "")
    asked = with_max_length(checkpoint, 512)
    assert asked.max_length_tokens == 512
    assert asked.length_note is None


@pytest.mark.parametrize("tokens", [20, 300])
def test_a_model_trained_here_reads_as_long_pairs_as_in_training(
    tmp_path: Path, tokens: int
) -> None:
    write_long_bert(tmp_path)
    read = load_checkpoint(str(tmp_path), None, None)
    save_checkpoint(read.model, read.tokenizer, tmp_path / "trained", tokens)
    trained = load_checkpoint(str(tmp_path / "trained"), None, None)
    assert trained.max_length_tokens == tokens
    assert with_max_length(trained, 512).max_length_tokens == 512, "which it has positions for"


def test_a_file_of_facts_that_holds_none_is_refused(tmp_path: Path) -> None:
    write_bert(tmp_path)
    (tmp_path / "adrel.json").write_text("{}", encoding="utf-8")
    with pytest.raises(UnsupportedCheckpoint, match=r"has an adrel\.json that does not say"):
        load_checkpoint(str(tmp_path), None, None)


def test_a_calibration_stored_beside_the_weights_comes_along(tmp_path: Path) -> None:
    write_bert(tmp_path)
    file = tmp_path / CALIBRATION_FILE
    stored = Temperature(temperature=2, fitted_on="dev")
    file.write_text(stored.model_dump_json(), encoding="utf-8")
    assert load_checkpoint(str(tmp_path), None, None).calibration == stored
    file.write_text(stored.model_dump_json().replace("2.0", "-2.0"), encoding="utf-8")
    with pytest.raises(UnsupportedCheckpoint, match="is not a score calibration") as caught:
        load_checkpoint(str(tmp_path), None, None)
    assert "\n" not in str(caught.value)


def test_the_options_for_the_head_come_to_the_head(tmp_path: Path) -> None:
    folder = str(write_bert(tmp_path / "three", n_labels=3))
    assert load_checkpoint(folder, "LABEL_2", None).head.relevant_index == 2
    assert load_checkpoint(folder, None, None, grades="2,0,1").head.grades == (0.5, 1, 0)
    with pytest.raises(UnsupportedCheckpoint, match=f"^checkpoint {folder} has 3 classes named"):
        load_checkpoint(folder, None, None)


def test_a_tokenizer_that_leaves_the_segments_to_the_model_is_noted(tmp_path: Path) -> None:
    file = write_bert(tmp_path / "tiny") / "tokenizer_config.json"
    fields = json.loads(file.read_text(encoding="utf-8"))
    names = ["input_ids", "attention_mask"]
    file.write_text(json.dumps({**fields, "model_input_names": names}), encoding="utf-8")
    notes = load_checkpoint(str(file.parent), None, None).notes
    assert len(notes) == 1
    assert "leaves out token_type_ids" in notes[0]


def test_a_folder_given_by_a_relative_path_has_its_own_name(
    tiny_checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny_checkpoint)
    checkpoint = load_checkpoint(".", None, None)
    assert checkpoint.name == checkpoint.source == tiny_checkpoint.name
