from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForMaskedLM, AutoTokenizer

from model_export import training
from model_export.errors import ExportError, UnsupportedCheckpoint
from model_export.finetune import finetune
from model_export.pretraining.ad_texts import AdText
from model_export.pretraining.loss import pretraining_loss
from model_export.pretraining.masked_rows import MASKED, NO_LABEL, masking, to_rows
from model_export.pretraining.pretrain import masked_loss, pretrain
from model_export.pretraining.recipe import REPORT_FILE, PretrainRecipe
from model_export.recipe import recipe_for
from tests.model_export.tiny_bert import write_pairs, write_tiny_base
from tests.tiny_models import WORDS, write_model

if TYPE_CHECKING:
    from pathlib import Path

QUICK = PretrainRecipe(epochs=2, max_text_tokens=24, learning_rate=5e-3, held_out_share=0.2)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_tiny_base(tmp_path / "base")


@pytest.fixture
def ads(tmp_path: Path) -> Path:
    """Titles in which every word tells the next one, so that masks can be guessed."""
    file = tmp_path / "ads.jsonl"
    rows = [
        {
            "title": " ".join(WORDS[(i + j) % len(WORDS)] for j in range(4 + i % 5)),
            "description": f"{WORDS[i % len(WORDS)]} {i}",
        }
        for i in range(200)
    ]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return file


def test_masked_words_are_guessed_better_after_it(tmp_path: Path, base: Path, ads: Path) -> None:
    recipe = replace(QUICK, epochs=6)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine", encoding="utf-8")
    report = pretrain([ads], str(base), tmp_path / "out", recipe, show_progress=False)
    best = min(epoch["quality"]["perplexity"] for epoch in report.epochs)
    assert best < 0.7 * report.before["perplexity"]
    assert (report.n_texts, report.n_held_out) == (160, 40)
    stored = json.loads((tmp_path / "out" / REPORT_FILE).read_text(encoding="utf-8"))
    assert stored["before"] == report.before
    assert (tmp_path / "out" / "notes.txt").is_file()


@pytest.mark.parametrize("next_sentence", [False, True])
def test_finetune_starts_from_what_it_wrote(
    tmp_path: Path, base: Path, ads: Path, next_sentence: bool
) -> None:
    recipe = replace(QUICK, next_sentence=next_sentence)
    pretrain([ads], str(base), tmp_path / "out", recipe, show_progress=False)
    before, after = (load_file(where / "model.safetensors") for where in (base, tmp_path / "out"))
    name = "embeddings.word_embeddings.weight"
    [own] = [value for key, value in before.items() if key.endswith(name)]
    [learnt] = [value for key, value in after.items() if key.endswith(name)]
    assert not torch.equal(own, learnt)
    pairs = write_pairs(tmp_path / "pairs.jsonl")
    options: dict[str, Any] = {"max_pair_tokens": 16, "epochs": 1, "batch_pairs": 10}
    finetune(
        [pairs],
        [pairs],
        str(tmp_path / "out"),
        tmp_path / "tuned",
        recipe_for(approach="full", **options),
        show_progress=False,
    )


def test_the_loss_is_that_of_the_masked_positions_alone(base: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(base)
    model = AutoModelForMaskedLM.from_pretrained(base).eval()
    torch.manual_seed(3)
    rows = to_rows([AdText("red shoe cheap run fast long lamp")] * 8, tokenizer, QUICK)
    batch = masking(tokenizer, QUICK)(rows)
    labels = batch["labels"][MASKED]
    with torch.no_grad():
        output = model(**{k: v for k, v in batch.items() if k != "labels"})
    trained_on = pretraining_loss(output, batch["labels"])
    is_masked = labels != NO_LABEL
    assert is_masked.any()
    own = -output.logits.log_softmax(-1)[is_masked].gather(1, labels[is_masked, None]).mean()
    assert float(trained_on) == pytest.approx(float(own), rel=1e-5)
    assert masked_loss(model, [batch]) == pytest.approx(float(own), rel=1e-5)


def test_the_same_seed_gives_the_same_weights_also_after_a_stop(
    tmp_path: Path, base: Path, ads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretrain([ads], str(base), tmp_path / "a", QUICK, show_progress=False)

    class Killed(BaseException):
        pass

    judged = []
    evaluate = training._Trainer.evaluate  # the moment to stop at

    def stop_in_the_second(self: Any, *args: object, **more: object) -> dict[str, Any]:  # noqa: ANN401  # theirs
        judged.append(1)
        if len(judged) > 1:
            raise Killed
        return evaluate(self, *args, **more)

    monkeypatch.setattr(training._Trainer, "evaluate", stop_in_the_second)
    with pytest.raises(Killed):
        pretrain([ads], str(base), tmp_path / "b", QUICK, show_progress=False)
    monkeypatch.undo()
    with pytest.raises(ExportError, match="--resume"):
        pretrain([ads], str(base), tmp_path / "b", QUICK, show_progress=False)
    report = pretrain([ads], str(base), tmp_path / "b", QUICK, resume=True, show_progress=False)
    assert [epoch["epoch"] for epoch in report.epochs] == [1, 2]
    a, b = ((tmp_path / name / "model.safetensors").read_bytes() for name in "ab")
    assert a == b


def test_next_sentences_are_for_bert_and_for_texts_in_two_parts(tmp_path: Path, ads: Path) -> None:
    roberta = write_model(tmp_path / "roberta", "roberta")
    recipe = replace(QUICK, next_sentence=True)
    with pytest.raises(UnsupportedCheckpoint, match="--next-sentence is for BERT"):
        pretrain([ads], str(roberta), tmp_path / "out", recipe, show_progress=False)
    titles = tmp_path / "titles.txt"
    titles.write_text("\n".join(f"red shoe {i}" for i in range(60)), encoding="utf-8")
    with pytest.raises(ExportError, match="two parts"):
        pretrain([titles], str(roberta), tmp_path / "out", recipe, show_progress=False)


@pytest.mark.parametrize("next_sentence", [False, True])
def test_batches_without_a_mask_or_without_second_parts_do_no_harm(
    tmp_path: Path, base: Path, next_sentence: bool
) -> None:
    file = tmp_path / "ads.jsonl"
    rows: list[dict[str, str]] = [
        {"title": WORDS[i % 10], "text": WORDS[i // 10]} for i in range(100)
    ]
    rows += [{"title": f"{WORDS[i % 10]} {WORDS[i // 10]}"} for i in range(100)]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    recipe = replace(QUICK, next_sentence=next_sentence, batch_texts=1, epochs=1)
    report = pretrain([file], str(base), tmp_path / "out", recipe, show_progress=False)
    assert math.isfinite(report.epochs[0]["loss"])


def test_an_encoder_without_a_pooler_is_written_without_one(
    tmp_path: Path, base: Path, ads: Path
) -> None:
    weights = load_file(base / "model.safetensors")
    bare = {name: value for name, value in weights.items() if "pooler" not in name}
    save_file(bare, base / "model.safetensors", metadata={"format": "pt"})
    pretrain([ads], str(base), tmp_path / "out", replace(QUICK, epochs=1), show_progress=False)
    assert load_file(tmp_path / "out" / "model.safetensors").keys() == bare.keys()
    del bare["encoder.layer.1.output.dense.weight"]
    save_file(bare, base / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UnsupportedCheckpoint, match=r"layer\.1\.output\.dense\.weight, which"):
        pretrain([ads], str(base), tmp_path / "no", QUICK, show_progress=False)


def test_too_few_texts_are_refused(tmp_path: Path, base: Path) -> None:
    few = tmp_path / "few.txt"
    few.write_text("red shoe\nblue bag\n", encoding="utf-8")
    with pytest.raises(ExportError, match="there are 2 different texts, of which 40"):
        pretrain([few], str(base), tmp_path / "out", QUICK, show_progress=False)


def test_a_value_that_cannot_work_is_refused_with_its_limits() -> None:
    with pytest.raises(ExportError, match=r"--mask-share is 0\.9, which is not in 0\.01 to 0\.5"):
        PretrainRecipe(mask_share=0.9)
    with pytest.raises(ExportError, match="--max-text-tokens is 4, which is not in 8 to 512"):
        PretrainRecipe(max_text_tokens=4)
