from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertForSequenceClassification

from model_export.base_weights import weights_sha256
from model_export.distillation.student import make_student
from model_export.errors import (
    AdapterMismatch,
    BaseWeightsMissing,
    DamagedDelta,
    ExportError,
    UnsupportedCheckpoint,
)
from model_export.facts_file import FACTS_FILE
from model_export.weight_delta import (
    WEIGHTS_FILE,
    DeltaFacts,
    is_delta,
    load_delta,
    read_facts,
    save_delta,
)
from service.scoring.bundle_files import sha256_of
from tests.model_export.tiny_bert import write_other_base, write_tiny_base

ROOMY = 100_000  # bytes; the tiny student's delta takes a tenth of it at its finest


def trained(base: Path) -> BertForSequenceClassification:
    """The base's second layer with noise on all that a student learns, as if it had learnt it."""
    torch.manual_seed(1)
    whole = BertForSequenceClassification.from_pretrained(base, num_labels=1)
    student: BertForSequenceClassification = make_student(whole, (1,))
    with torch.no_grad():
        for name, weight in student.named_parameters():
            if "embeddings" not in name:
                weight.add_(0.05 * torch.randn_like(weight))
    student.eval()
    return student


def save(base: Path, folder: Path, max_bytes: int = ROOMY) -> DeltaFacts:
    return save_delta(
        trained(base), str(base), (1,), folder, max_bytes=max_bytes, max_pair_tokens=24
    )


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_tiny_base(tmp_path / "base")


@pytest.fixture
def delta(tmp_path: Path, base: Path) -> Path:
    save(base, tmp_path / "delta")
    return tmp_path / "delta"


def distance(folder: Path, base: Path) -> float:
    """Root mean square of what rounding changed in the linear maps of the layers."""
    wanted, got = trained(base).state_dict(), load_delta(folder).state_dict()
    off = [(got[n] - w).square().mean() for n, w in wanted.items() if "dense.weight" in n]
    return float(torch.stack(off).mean().sqrt())


def test_a_student_comes_back_as_it_was_but_for_the_rounding(delta: Path, base: Path) -> None:
    wanted, got = trained(base).state_dict(), load_delta(delta).state_dict()
    assert got.keys() == wanted.keys()
    assert {value.dtype for value in got.values()} == {torch.float32}
    assert 0 < distance(delta, base) < 0.002, "of a noise of 0.05"
    for name, value in wanted.items():
        if value.ndim == 1:
            torch.testing.assert_close(got[name], value, rtol=1e-3, atol=1e-4)
        if "embeddings" in name:
            assert torch.equal(got[name], value)


def test_fewer_bytes_are_met_and_paid_with_precision(delta: Path, base: Path) -> None:
    fine = (delta / WEIGHTS_FILE).stat().st_size
    coarse = delta.with_name("coarse")
    save(base, coarse, max_bytes=fine * 2 // 3)
    assert 0.9 < (coarse / WEIGHTS_FILE).stat().st_size / (fine * 2 // 3) <= 1
    assert distance(coarse, base) > 3 * distance(delta, base)


def test_a_student_that_cannot_be_so_small_is_refused_and_nothing_written(
    tmp_path: Path, base: Path
) -> None:
    with pytest.raises(ExportError, match="at its coarsest, which is more than 2000"):
        save(base, tmp_path / "delta", max_bytes=2000)
    assert not (tmp_path / "delta").exists()


def test_reading_it_twice_gives_the_same_bits(delta: Path) -> None:
    once, again = (load_delta(delta).state_dict() for _ in range(2))
    assert all(torch.equal(again[name], value) for name, value in once.items())


def test_facts_survive_the_way_to_disk_and_back(delta: Path, base: Path) -> None:
    facts = read_facts(delta)
    assert facts == DeltaFacts(
        str(base), weights_sha256(base), (1,), sha256_of(delta / WEIGHTS_FILE), 24
    )


def test_a_delta_is_told_from_a_checkpoint(delta: Path, base: Path) -> None:
    assert is_delta(delta)
    assert not is_delta(base)


def test_another_base_of_the_same_shape_is_refused_by_its_hash(tmp_path: Path, delta: Path) -> None:
    other = write_other_base(tmp_path / "other")
    with pytest.raises(AdapterMismatch, match="sha256"):
        load_delta(delta, str(other))


def test_a_base_that_is_gone_is_reported_as_missing(
    tmp_path: Path, base: Path, delta: Path
) -> None:
    base.rename(tmp_path / "moved")
    with pytest.raises(BaseWeightsMissing):
        load_delta(delta)
    assert load_delta(delta, str(tmp_path / "moved"))


def test_a_base_without_a_pooler_is_refused_since_its_start_would_be_chance(
    tmp_path: Path, base: Path
) -> None:
    weights = load_file(base / "model.safetensors")
    bare = {name: value for name, value in weights.items() if "pooler" not in name}
    save_file(bare, base / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        UnsupportedCheckpoint, match=r"base model base has no weights that fit bert\.pooler"
    ):
        save(base, tmp_path / "delta")


@pytest.mark.parametrize("change", ["flipped", "cut off", "gone"])
def test_a_file_that_is_not_the_recorded_one_is_refused(delta: Path, change: str) -> None:
    file = delta / WEIGHTS_FILE
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    if change == "gone":
        file.unlink()
    else:
        file.write_bytes(content if change == "flipped" else content[:-1])
    with pytest.raises(DamagedDelta, match="sha256"):
        load_delta(delta)


def test_a_file_of_other_tensors_is_refused_though_its_hash_is_recorded(delta: Path) -> None:
    file = delta / WEIGHTS_FILE
    tensors = load_file(file)
    tensors.pop("classifier.bias")
    save_file(tensors, file)
    facts = json.loads((delta / FACTS_FILE).read_text(encoding="utf-8"))
    facts["delta_sha256"] = sha256_of(file)
    (delta / FACTS_FILE).write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(DamagedDelta, match="does not fit"):
        load_delta(delta)


@pytest.mark.parametrize("content", [None, "{", "{}", '{"base": "b", "layers": 1}'])
def test_a_delta_without_its_facts_is_refused(delta: Path, content: str | None) -> None:
    file = delta / FACTS_FILE
    if content is None:
        file.unlink()
    else:
        file.write_text(content, encoding="utf-8")
    with pytest.raises(DamagedDelta, match="what the delta belongs to"):
        load_delta(delta)


def test_a_student_of_another_base_is_refused(tmp_path: Path, base: Path) -> None:
    student = trained(base)
    with torch.no_grad():
        student.bert.embeddings.word_embeddings.weight += 1
    with pytest.raises(ExportError, match=r"word_embeddings\.weight differs .* adapter"):
        save_delta(student, str(base), (1,), tmp_path / "d", max_bytes=ROOMY, max_pair_tokens=24)
    with pytest.raises(ExportError, match=r"shapes of the base .* \(--base\)"):
        save_delta(
            trained(base), str(base), (0, 1), tmp_path / "d", max_bytes=ROOMY, max_pair_tokens=24
        )
