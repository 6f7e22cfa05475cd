"""What `config.json` alone shows: where it is, which family, which task. No weights are read.

No code that comes with a checkpoint is ever run. Messages of the errors raised here go on after
"checkpoint NAME".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from model_export.errors import UnsupportedCheckpoint
from model_export.library_calls import one_line, quiet_transformers, refusing

CLASSIFIER = "ForSequenceClassification"

HEAD_FILE = "adrel_head.json"
"""Beside an encoder that has a head of ours, see `pooled_classifier`."""

# Ends of transformers' class names -> what such a model gives instead of logits for a pair.
OTHER_TASKS = {
    "ForCausalLM": "a generative language model",
    "LMHeadModel": "a generative language model",
    "ForConditionalGeneration": "a generative encoder-decoder",
    "ForTokenClassification": "a model that labels single tokens",
    "ForQuestionAnswering": "a model that finds answers in a text",
    "ForMultipleChoice": "a model that chooses among several texts",
    "ForNextSentencePrediction": "a model that was pre-trained to tell which text comes next",
}


def read_config(reference: str) -> dict[str, Any]:
    """The content of `config.json`, as plain data.

    Raises:
        UnsupportedCheckpoint: It is not there, cannot be fetched, or is not JSON.
    """
    from transformers import PretrainedConfig

    path = Path(reference)
    if path.is_file():
        raise UnsupportedCheckpoint("cannot be loaded: it is a file; give the folder that it is in")
    if not path.exists() and _is_path(reference):
        raise UnsupportedCheckpoint("cannot be loaded: there is no such folder")
    if path.is_dir() and not (path / "config.json").is_file():
        raise UnsupportedCheckpoint("cannot be loaded: the folder has no config.json")
    try:
        with quiet_transformers():
            fields, _ = PretrainedConfig.get_config_dict(reference)
    except Exception as error:  # a hub or a folder can fail in ways that raise anything
        raise UnsupportedCheckpoint(f"cannot be loaded: {_why_not_fetched(error)}") from error
    return dict(fields)


def has_pooled_head(reference: str) -> bool:
    """Whether the folder is an encoder with a head of ours."""
    return (Path(reference) / HEAD_FILE).is_file()


def require_known_family(fields: dict[str, Any]) -> None:
    """Refuse what transformers' own code does not compute.

    Args:
        fields: The content of `config.json`.

    Raises:
        UnsupportedCheckpoint: Code of its own, a family that is not transformers', or a decoder.
    """
    from transformers import CONFIG_MAPPING

    family = fields.get("model_type")
    if family not in CONFIG_MAPPING:
        if fields.get("auto_map"):
            raise UnsupportedCheckpoint(
                f"needs program code from its own repository (model_type {family!r}, auto_map), "
                "which is never run; only families that transformers itself knows can be exported"
            )
        raise UnsupportedCheckpoint(
            f"cannot be loaded: its config.json names no family of transformers (model_type "
            f"{family!r})"
        )
    own = sorted(name for name in fields.get("auto_map") or () if name.startswith(_MODEL_CODE))
    if own:
        raise UnsupportedCheckpoint(
            f"has program code of its own for {', '.join(own)} (auto_map), which is never run; "
            f"transformers' {family} may compute something else from the same weights"
        )
    names = [str(name) for name in fields.get("architectures") or ()]
    if fields.get("is_encoder_decoder"):
        raise UnsupportedCheckpoint(
            f"is an encoder-decoder ({', '.join(names) or family}); only encoders can be exported"
        )


def require_classifier(fields: dict[str, Any]) -> None:
    """Refuse what `config.json` already shows to be something else than a classifier.

    Args:
        fields: The content of `config.json`.

    Raises:
        UnsupportedCheckpoint: As `require_known_family`; another task, or no trained head.
    """
    require_known_family(fields)
    names = [str(name) for name in fields.get("architectures") or ()]
    if not names or any(name.endswith(CLASSIFIER) for name in names):
        return
    for ending, what in OTHER_TASKS.items():
        if names[0].endswith(ending):
            raise UnsupportedCheckpoint(
                f"is {what} ({names[0]}), not a classifier of pairs; fine-tune an encoder for "
                "sequence classification"
            )
    raise UnsupportedCheckpoint(
        f"is an encoder without a trained classification head ({names[0]}): fine-tune it for "
        "sequence classification first"
    )


def load_config(reference: str) -> Any:  # noqa: ANN401  # untyped library
    """The config object of its family, set so that the model runs on any machine and can be traced.

    Raises:
        UnsupportedCheckpoint: Its fields do not fit its family.
    """
    from transformers import AutoConfig

    with refusing(), quiet_transformers():
        config = AutoConfig.from_pretrained(reference, trust_remote_code=False)
    if config.model_type == "modernbert":
        # Compiled layers cannot be traced, and without a word of ours transformers takes flash
        # attention wherever it is installed, which has no CPU kernels.
        config.reference_compile = False
        config._attn_implementation = "sdpa"  # the only place where it is kept
    if getattr(config, "position_embedding_type", "absolute") != "absolute":
        config._attn_implementation = "eager"  # the only one that has them
    return config


def _is_path(reference: str) -> bool:
    """Not a hub id, which is "name" or "owner/name"."""
    is_id = reference.count("/") <= 1 and not reference.startswith(("/", ".", "~"))
    return not is_id or "\\" in reference


def _why_not_fetched(error: BaseException) -> str:
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    causes = list(_chain(error))
    if any(isinstance(cause, GatedRepoError) for cause in causes):
        return "it is no folder here, and the hub gives it only to those who have asked for access"
    if any(isinstance(cause, RepositoryNotFoundError) for cause in causes):
        return "it is no folder here, and the hub has no such model (or it is a private one)"
    if any(isinstance(cause, ConnectionError | TimeoutError) for cause in causes) or any(
        type(cause).__name__ in _UNREACHABLE for cause in causes
    ):
        return (
            "it is no folder here and not in the local cache of the hub, and the hub cannot be "
            "reached (no network, or HF_HUB_OFFLINE is set)"
        )
    return one_line(error)


_MODEL_CODE = ("AutoConfig", "AutoModel")

# By name: they come from two libraries, of which only one is a dependency of ours.
_UNREACHABLE = frozenset({"LocalEntryNotFoundError", "OfflineModeIsEnabled", "ConnectError"})


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
