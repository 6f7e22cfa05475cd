from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError
from safetensors.torch import load_file, save_file
from transformers import (
    BartConfig,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertLMHeadModel,
    BertModel,
    CanineTokenizer,
    PretrainedConfig,
)

from model_export.checkpoint import load_checkpoint
from model_export.errors import UnsupportedCheckpoint
from tests.tiny_models import write_bert, write_model


def refusal(folder: Path | str, **options: Any) -> str:  # noqa: ANN401  # passed through
    """Why a checkpoint is refused: always one line that starts with its name."""
    with pytest.raises(UnsupportedCheckpoint) as caught:
        load_checkpoint(str(folder), None, None, **options)
    message = str(caught.value)
    assert message.startswith(f"checkpoint {folder} ")
    assert "\n" not in message
    return message


def edit(file: Path, **fields: object) -> None:
    old = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**old, **fields}), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A good checkpoint, for a test to break."""
    return write_bert(tmp_path / "tiny")


def pickled(folder: Path) -> Path:
    """The same checkpoint with its weights in a pickle."""
    state = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(state, folder / "pytorch_model.bin")
    return folder


def test_what_is_not_there_is_told_from_what_is_something_else(tmp_path: Path) -> None:
    assert "there is no such folder" in refusal(tmp_path / "nothing")
    assert "there is no such folder" in refusal("./nothing")
    assert "has no config.json" in refusal(tmp_path)
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"")
    assert "it is a file; give the folder" in refusal(file)


def test_a_hub_model_that_is_not_in_the_cache_says_that_there_is_no_network() -> None:
    message = refusal("nowhere/at-all")
    assert "no folder here and not in the local cache" in message
    assert "HF_HUB_OFFLINE" in message


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(RepositoryNotFoundError, "no such model"), (GatedRepoError, "asked for access")],
)
def test_what_the_hub_refuses_is_said_in_its_words(
    kind: type[RepositoryNotFoundError], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: str) -> None:
        raise OSError("Pages of advice.\n\n\n") from kind("404")

    monkeypatch.setattr(PretrainedConfig, "get_config_dict", fails)
    assert reason in refusal("somebody/model")


def test_a_config_that_is_not_json_is_refused(folder: Path) -> None:
    (folder / "config.json").write_text("{", encoding="utf-8")
    assert "cannot be loaded: " in refusal(folder)


SMALL = BertConfig(vocab_size=114, hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
                   intermediate_size=32, is_decoder=False)  # fmt: skip


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (BertModel, "an encoder without a trained classification head (BertModel)"),
        (BertForMaskedLM, "an encoder without a trained classification head (BertForMaskedLM)"),
        (BertForTokenClassification, "a model that labels single tokens"),
        (BertLMHeadModel, "a generative language model"),
    ],
)
def test_another_task_is_refused_by_the_name_of_its_class(
    folder: Path, make: Callable[[BertConfig], Any], reason: str
) -> None:
    make(SMALL).save_pretrained(folder)
    assert reason in refusal(folder)


@pytest.mark.parametrize("name", ["Qwen3ForCausalLM", "GPT2LMHeadModel"])
def test_a_generative_model_is_refused_before_its_weights_are_read(folder: Path, name: str) -> None:
    (folder / "model.safetensors").write_bytes(b"not read")
    edit(folder / "config.json", architectures=[name])
    assert f"a generative language model ({name})" in refusal(folder)


def test_an_encoder_decoder_is_refused(folder: Path) -> None:
    BartConfig(architectures=["BartForSequenceClassification"]).save_pretrained(folder)
    assert "is an encoder-decoder (BartForSequenceClassification)" in refusal(folder)


def test_a_head_that_was_never_trained_is_refused_though_the_config_names_it(folder: Path) -> None:
    state = load_file(folder / "model.safetensors")
    body = {name: value for name, value in state.items() if not name.startswith("classifier")}
    save_file(body, folder / "model.safetensors", metadata={"format": "pt"})
    message = refusal(folder)
    assert "no trained weights for ['classifier.bias', 'classifier.weight']" in message
    assert "fine-tune it for sequence classification" in message


def test_a_head_of_another_size_than_its_config_says_is_refused(folder: Path) -> None:
    BertConfig.from_pretrained(
        folder, id2label={0: "0", 1: "1", 2: "2"}, architectures=["BertForSequenceClassification"]
    ).save_pretrained(folder)
    assert "cannot be loaded: " in refusal(folder)


def test_program_code_of_a_checkpoint_is_never_run(folder: Path, tmp_path: Path) -> None:
    trace = tmp_path / "it-ran"
    code = f"import pathlib\npathlib.Path({str(trace)!r}).touch()\n"
    (folder / "modeling_own.py").write_text(code, encoding="utf-8")
    auto_map = {"AutoConfig": "modeling_own.OwnConfig",
                "AutoModelForSequenceClassification": "modeling_own.OwnModel"}  # fmt: skip
    edit(folder / "config.json", auto_map=auto_map)
    assert "code of its own for AutoConfig, AutoModelForSequenceClassification" in refusal(folder)
    edit(folder / "config.json", model_type="own")
    message = refusal(folder)
    assert "needs program code from its own repository" in message
    assert "'own'" in message
    assert not trace.exists()


def test_a_family_that_nobody_knows_is_refused(folder: Path) -> None:
    edit(folder / "config.json", model_type="own")
    assert "no family of transformers (model_type 'own')" in refusal(folder)


def test_pickled_weights_are_opened_only_on_demand(folder: Path) -> None:
    safe = load_checkpoint(str(folder), None, None)
    message = refusal(pickled(folder))
    assert "no weights in safetensors format" in message
    assert "--allow-pickle" in message
    assert "can carry program code" in message
    allowed = load_checkpoint(str(folder), None, None, allow_pickle=True)
    assert allowed.source_sha256 == safe.source_sha256


class _Bomb:
    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Callable[..., None], tuple[Path]]:
        return Path.touch, (self.trace,)


def test_code_of_its_own_for_a_known_family_is_refused_too(folder: Path) -> None:
    edit(folder / "config.json", auto_map={"AutoModelForSequenceClassification": "own.Bert"})
    with pytest.raises(UnsupportedCheckpoint, match="code of its own for AutoModelFor"):
        load_checkpoint(str(folder), None, None)


def test_weights_that_the_architecture_has_no_use_for_are_refused(folder: Path) -> None:
    edit(folder / "config.json", num_hidden_layers=1)
    with pytest.raises(UnsupportedCheckpoint, match=r"does not use, such as .*layer\.1\."):
        load_checkpoint(str(folder), None, None)


def test_a_pickle_with_code_in_it_is_refused_even_on_demand(folder: Path, tmp_path: Path) -> None:
    trace = tmp_path / "it-ran"
    (folder / "model.safetensors").unlink()
    torch.save({"bert.pooler.dense.bias": _Bomb(trace)}, folder / "pytorch_model.bin")
    assert "cannot be loaded: " in refusal(folder, allow_pickle=True)
    assert not trace.exists()


def test_safetensors_are_taken_where_there_is_a_pickle_too(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"not read")
    assert load_checkpoint(str(folder), None, None, allow_pickle=True).head.n_logits == 1


@pytest.mark.parametrize("content", [b"version https://git-lfs.github.com/spec/v1\n", b""])
def test_weights_that_were_not_downloaded_are_refused(folder: Path, content: bytes) -> None:
    (folder / "model.safetensors").write_bytes(content)
    assert "cannot be loaded: " in refusal(folder)


def test_weights_that_were_cut_off_are_refused(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    assert "cannot be loaded: " in refusal(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_refused_with_the_name_of_the_tensor(
    folder: Path, value: float
) -> None:
    state = load_file(folder / "model.safetensors")
    state["bert.pooler.dense.weight"][3, 5] = value
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    message = refusal(folder)
    assert "NaN or infinite numbers in its weights, in bert.pooler.dense.weight" in message


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_weights_are_the_reference_in_fp32_and_in_eval_mode(
    folder: Path, dtype: torch.dtype
) -> None:
    BertForSequenceClassification.from_pretrained(folder).to(dtype).save_pretrained(folder)
    assert load_file(folder / "model.safetensors")["classifier.weight"].dtype == dtype
    model = load_checkpoint(str(folder), None, None).model
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert not model.training


def test_weights_in_several_files_are_the_same_checkpoint(folder: Path) -> None:
    whole = load_checkpoint(str(folder), None, None)
    (folder / "model.safetensors").unlink()
    whole.model.save_pretrained(folder, max_shard_size="50KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    assert load_checkpoint(str(folder), None, None).source_sha256 == whole.source_sha256
    next(folder.glob("model-00002*.safetensors")).unlink()
    assert "cannot be loaded: " in refusal(folder)


def without_tokenizer(folder: Path) -> Path:
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        (folder / name).unlink()
    return folder


def test_a_tokenizer_written_in_python_is_refused(folder: Path) -> None:
    CanineTokenizer().save_pretrained(without_tokenizer(folder))
    assert "no fast tokenizer" in refusal(folder)


def test_a_folder_without_a_tokenizer_is_refused(folder: Path) -> None:
    assert "cannot be loaded: its tokenizer " in refusal(without_tokenizer(folder))


def test_a_tokenizer_file_that_is_none_is_refused(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    assert "cannot be loaded: its tokenizer " in refusal(folder)


def test_a_tokenizer_without_a_pad_token_is_refused(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "tiny", "modernbert")
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        fields = json.loads((folder / name).read_text(encoding="utf-8"))
        del fields["pad_token"]
        (folder / name).write_text(json.dumps(fields), encoding="utf-8")
    assert "has no pad token" in refusal(folder)


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused(folder: Path) -> None:
    config = BertConfig.from_pretrained(folder)
    config.vocab_size -= 1
    BertForSequenceClassification(config).save_pretrained(folder)
    message = refusal(folder)
    assert f"ids up to {config.vocab_size}, but embeddings for {config.vocab_size}" in message


@pytest.mark.parametrize("field", ["reference_compile", "_attn_implementation"])
def test_modernbert_is_set_so_that_it_runs_and_can_be_traced_anywhere(
    tmp_path: Path, field: str
) -> None:
    folder = write_model(tmp_path / "tiny", "modernbert")
    edit(folder / "config.json", reference_compile=True)
    config = load_checkpoint(str(folder), None, None).model.config
    assert getattr(config, field) == {"reference_compile": False}.get(field, "sdpa")
