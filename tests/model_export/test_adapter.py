from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import BertForSequenceClassification

from model_export.adapter import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    AdapterFacts,
    is_adapter,
    load_merged,
    read_facts,
    save_adapter,
)
from model_export.base_weights import weights_sha256
from model_export.errors import AdapterMismatch, BaseWeightsMissing
from model_export.facts_file import FACTS_FILE
from service.scoring.ad_template import AdTemplate
from tests.model_export.tiny_bert import write_other_base, write_tiny_base

if TYPE_CHECKING:
    from pathlib import Path

IDS = torch.tensor([[2, 5, 8, 3, 9, 8, 3], [2, 6, 9, 3, 10, 3, 0]])
MASK = (IDS != 0).long()
TYPES = torch.tensor([[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 1, 1, 0]])


def _logits(model: torch.nn.Module) -> torch.Tensor:
    with torch.inference_mode():
        output = model(input_ids=IDS, attention_mask=MASK, token_type_ids=TYPES)
    logits = output.logits
    assert isinstance(logits, torch.Tensor)
    return logits


def _trained(base: Path) -> PeftModel:
    """A model with an adapter that does something, as if it had been trained."""
    torch.manual_seed(1)
    plain = BertForSequenceClassification.from_pretrained(base, num_labels=1)
    config = LoraConfig(
        r=4,
        lora_alpha=8,
        target_modules=["query", "key", "value", "dense"],
        modules_to_save=["classifier"],
        task_type="SEQ_CLS",
    )
    model = get_peft_model(plain, config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight.normal_(std=0.5)
    return model.eval()


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_tiny_base(tmp_path / "base")


@pytest.fixture
def facts(base: Path) -> AdapterFacts:
    return AdapterFacts(
        base=str(base),
        base_sha256=weights_sha256(base),
        ad_template=AdTemplate(fields=("title",), separator=" | "),
        max_pair_tokens=24,
    )


@pytest.fixture
def adapter(tmp_path: Path, base: Path, facts: AdapterFacts) -> Path:
    folder = tmp_path / "adapter"
    save_adapter(_trained(base), folder, facts)
    return folder


def test_a_merged_adapter_scores_like_the_trained_model(adapter: Path, base: Path) -> None:
    expected = _logits(_trained(base))
    torch.testing.assert_close(_logits(load_merged(adapter)), expected, atol=5e-3, rtol=0)


def test_the_adapter_changes_the_logits_at_all(adapter: Path, base: Path) -> None:
    torch.manual_seed(1)
    plain = BertForSequenceClassification.from_pretrained(base, num_labels=1).eval()
    change = (_logits(load_merged(adapter)) - _logits(plain)).abs().max()
    assert change > 0.02


def test_the_stored_weights_are_fp16_and_the_merged_ones_fp32(adapter: Path) -> None:
    stored = load_file(adapter / WEIGHTS_FILE)
    assert {tensor.dtype for tensor in stored.values()} == {torch.float16}
    assert {p.dtype for p in load_merged(adapter).parameters()} == {torch.float32}


def test_plain_peft_loads_the_folder(adapter: Path, base: Path) -> None:
    plain = BertForSequenceClassification.from_pretrained(base, num_labels=1)
    merged = PeftModel.from_pretrained(plain, str(adapter)).merge_and_unload().eval()
    torch.testing.assert_close(_logits(merged), _logits(load_merged(adapter)))


def test_the_folder_names_its_base_and_holds_no_path_of_the_saver(
    tmp_path: Path, base: Path, facts: AdapterFacts
) -> None:
    folder = tmp_path / "published"
    save_adapter(_trained(base), folder, replace(facts, base="someone/base"))
    for file in (CONFIG_FILE, FACTS_FILE):
        text = (folder / file).read_text(encoding="utf-8")
        assert "someone/base" in text
        assert str(tmp_path) not in text


def test_facts_survive_the_way_to_disk_and_back(adapter: Path, facts: AdapterFacts) -> None:
    assert read_facts(adapter) == facts


def test_an_adapter_is_told_from_a_checkpoint(adapter: Path, base: Path) -> None:
    assert is_adapter(adapter)
    assert not is_adapter(base)


def test_another_base_of_the_same_shape_is_refused_by_its_hash(
    tmp_path: Path, adapter: Path
) -> None:
    other = write_other_base(tmp_path / "other")
    with pytest.raises(AdapterMismatch, match="sha256"):
        load_merged(adapter, str(other))


def test_a_base_of_another_shape_is_refused_even_with_the_right_hash(
    tmp_path: Path, adapter: Path
) -> None:
    wider = write_tiny_base(tmp_path / "wider", hidden_size=48)
    raw = json.loads((adapter / FACTS_FILE).read_text(encoding="utf-8"))
    raw["base_sha256"] = weights_sha256(wider)
    (adapter / FACTS_FILE).write_text(json.dumps(raw), encoding="utf-8")
    with pytest.raises(AdapterMismatch, match="does not fit"):
        load_merged(adapter, str(wider))


@pytest.mark.filterwarnings("ignore:Found missing adapter keys:UserWarning")  # PEFT's own notice
def test_an_adapter_that_lacks_a_tensor_is_refused_instead_of_left_at_its_start(
    adapter: Path,
) -> None:
    weights = load_file(adapter / WEIGHTS_FILE)
    removed = min(name for name in weights if "lora_B" in name)
    del weights[removed]
    save_file(weights, adapter / WEIGHTS_FILE)
    with pytest.raises(AdapterMismatch, match=removed):
        load_merged(adapter)


def test_an_adapter_without_head_is_refused(adapter: Path) -> None:
    weights = load_file(adapter / WEIGHTS_FILE)
    save_file({k: v for k, v in weights.items() if "lora_" in k}, adapter / WEIGHTS_FILE)
    with pytest.raises(AdapterMismatch, match="no classification head"):
        load_merged(adapter)


def test_a_broken_weights_file_is_refused(adapter: Path) -> None:
    (adapter / WEIGHTS_FILE).write_bytes(b"broken")
    with pytest.raises(AdapterMismatch, match="cannot be read"):
        load_merged(adapter)


def test_a_base_that_is_gone_is_reported_as_missing(
    tmp_path: Path, base: Path, adapter: Path
) -> None:
    base.rename(tmp_path / "moved")
    with pytest.raises(BaseWeightsMissing):
        load_merged(adapter)
    assert load_merged(adapter, str(tmp_path / "moved"))


@pytest.mark.parametrize("content", [None, "{", "{}", '{"base": "b", "ad_template": 1}'])
def test_an_adapter_without_its_facts_is_refused(adapter: Path, content: str | None) -> None:
    file = adapter / FACTS_FILE
    if content is None:
        file.unlink()
    else:
        file.write_text(content, encoding="utf-8")
    with pytest.raises(AdapterMismatch, match="which base weights"):
        load_merged(adapter)


def test_labels_come_back_with_the_model(tmp_path: Path) -> None:
    base = write_tiny_base(tmp_path / "base")
    plain = BertForSequenceClassification.from_pretrained(base, num_labels=3)
    config = LoraConfig(target_modules=["query"], modules_to_save=["classifier"])
    names = ("grade_0", "grade_1", "grade_2")
    facts = AdapterFacts(str(base), weights_sha256(base), AdTemplate(), 16, names)
    save_adapter(get_peft_model(plain, config), tmp_path / "adapter", facts)
    assert read_facts(tmp_path / "adapter") == facts
    merged = load_merged(tmp_path / "adapter")
    assert merged.config.id2label == dict(enumerate(names))
    (tmp_path / "adapter" / FACTS_FILE).write_text(
        json.dumps(asdict(replace(facts, labels=names[:2]))), encoding="utf-8"
    )
    with pytest.raises(AdapterMismatch, match="names 2 labels and has 3 logits"):
        load_merged(tmp_path / "adapter")
