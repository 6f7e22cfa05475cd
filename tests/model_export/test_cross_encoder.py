from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from model_export.checkpoint import load_checkpoint
from model_export.cross_encoder import CrossEncoderFacts, read_cross_encoder
from model_export.errors import UnsupportedCheckpoint
from tests.tiny_models import MAX_POSITIONS, write_bert

NEVER_IMPORTED = "antigravity_of_tests.Activation"  # there is no such module


def edit(file: Path, **fields: object) -> None:
    old = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    file.write_text(json.dumps({**old, **fields}), encoding="utf-8")


def test_a_folder_of_transformers_alone_has_nothing_to_add(tiny_checkpoint: Path) -> None:
    assert read_cross_encoder(str(tiny_checkpoint), {}) == CrossEncoderFacts()
    assert load_checkpoint(str(tiny_checkpoint), None, None).notes == ()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # its own, while it is imported
def test_what_sentence_transformers_saves_is_read(tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers")
    import torch

    made = library.CrossEncoder(
        str(write_bert(tmp_path / "made")), max_length=48, activation_fn=torch.nn.Tanh()
    )
    made.save_pretrained(str(tmp_path / "saved"))
    checkpoint = load_checkpoint(str(tmp_path / "saved"), None, None)
    assert checkpoint.max_length_tokens == 48
    assert "torch.nn.modules.activation.Tanh, which is not run" in checkpoint.notes[0]
    ours = checkpoint.model(
        **checkpoint.tokenizer("red shoe", "blue shoe", return_tensors="pt")
    ).logits
    theirs = made.predict([("red shoe", "blue shoe")], activation_fn=torch.nn.Identity())
    assert ours.item() == pytest.approx(float(theirs[0]), abs=1e-6)


@pytest.mark.parametrize(
    ("file", "fields"),
    [
        ("config.json", {"sbert_ce_default_activation_function": NEVER_IMPORTED}),
        ("config.json", {"sentence_transformers": {"activation_fn": NEVER_IMPORTED}}),
        ("config_sentence_transformers.json", {"activation_fn": NEVER_IMPORTED}),
    ],
)
def test_an_activation_is_noted_in_every_format_and_never_imported(
    tmp_path: Path, file: str, fields: dict[str, Any]
) -> None:
    folder = write_bert(tmp_path / "ce")
    plain = load_checkpoint(str(folder), None, None)
    edit(folder / file, **fields)
    checkpoint = load_checkpoint(str(folder), None, None)
    assert len(checkpoint.notes) == 1
    assert NEVER_IMPORTED in checkpoint.notes[0]
    assert checkpoint.source_sha256 == plain.source_sha256
    assert checkpoint.head == plain.head


@pytest.mark.parametrize("value", [None, "", 7, ["x"], {"a": 1}, "x" * 10_000])
def test_nonsense_in_place_of_an_activation_does_no_harm(tmp_path: Path, value: object) -> None:
    folder = write_bert(tmp_path / "ce")
    edit(folder / "config_sentence_transformers.json", activation_fn=value)
    edit(folder / "config.json", sentence_transformers=value)
    assert all(len(note) < 300 for note in load_checkpoint(str(folder), None, None).notes)


def test_the_stated_length_holds_unless_the_model_reads_less(tmp_path: Path) -> None:
    folder = write_bert(tmp_path / "ce")
    for file, key in (("config_sentence_transformers", "max_length"),
                      ("sentence_bert_config", "max_seq_length")):  # fmt: skip
        edit(folder / f"{file}.json", **{key: 20})
        assert load_checkpoint(str(folder), None, None).max_length_tokens == 20
        edit(folder / f"{file}.json", **{key: 512})
        assert load_checkpoint(str(folder), None, None).max_length_tokens == MAX_POSITIONS
        edit(folder / f"{file}.json", **{key: None})


def test_a_length_with_no_room_for_a_pair_is_refused(tmp_path: Path) -> None:
    folder = write_bert(tmp_path / "ce")
    edit(folder / "config_sentence_transformers.json", max_length=5)
    with pytest.raises(UnsupportedCheckpoint, match="reads at most 5 tokens"):
        load_checkpoint(str(folder), None, None)


def test_modules_after_the_encoder_are_refused_by_name(tmp_path: Path) -> None:
    folder = write_bert(tmp_path / "ce")
    types = ["sentence_transformers.base.modules.transformer.Transformer",
             "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"]  # fmt: skip
    modules = [{"idx": i, "path": "", "type": name} for i, name in enumerate(types)]
    (folder / "modules.json").write_text(json.dumps(modules[:1]), encoding="utf-8")
    assert load_checkpoint(str(folder), None, None).head.n_logits == 1
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    with pytest.raises(UnsupportedCheckpoint, match=r"\['LogitScore'\] after its encoder"):
        load_checkpoint(str(folder), None, None)


def test_a_prompt_that_is_always_put_before_the_text_is_refused(tmp_path: Path) -> None:
    folder = write_bert(tmp_path / "ce")
    file = folder / "config_sentence_transformers.json"
    edit(file, prompts={"shop": "Find: "}, default_prompt_name=None)
    assert load_checkpoint(str(folder), None, None).notes == ()
    edit(file, default_prompt_name="shop")
    with pytest.raises(UnsupportedCheckpoint, match="prompt 'shop'"):
        load_checkpoint(str(folder), None, None)


def test_a_file_that_is_not_json_is_refused_by_name(tmp_path: Path) -> None:
    folder = write_bert(tmp_path / "ce")
    (folder / "modules.json").write_text("{", encoding="utf-8")
    with pytest.raises(UnsupportedCheckpoint, match=r"modules\.json is not JSON"):
        load_checkpoint(str(folder), None, None)
