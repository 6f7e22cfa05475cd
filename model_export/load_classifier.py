"""The torch classifier and the tokenizer of a checkpoint, or one sentence why not.

No code that comes with a checkpoint is ever run, and pickles are opened only on demand.
Messages of the errors raised here go on after "checkpoint NAME".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from model_export.errors import UnsupportedCheckpoint
from model_export.library_calls import quiet_transformers, refusing


def load_model(reference: str, config: Any, *, allow_pickle: bool) -> Any:  # noqa: ANN401  # untyped library
    """The torch classifier in eval mode, fp32, with every weight of its head trained and finite.

    Args:
        reference: Folder or hub id.
        config: From `checkpoint_config.load_config`.
        allow_pickle: Take pickled weights where there are no others, through torch's restricted
            unpickler, which builds tensors and refuses all else.

    Raises:
        UnsupportedCheckpoint: Not to be loaded, no safetensors, weights missing or not finite.
    """
    pickled = _has_only_pickles(Path(reference))
    if pickled and not allow_pickle:
        raise UnsupportedCheckpoint(_PICKLED)
    try:
        model, info = _from_pretrained(reference, config, use_safetensors=not pickled)
    except UnsupportedCheckpoint as error:
        if Path(reference).is_dir() or "safetensors" not in str(error):
            raise
        if not allow_pickle:
            raise UnsupportedCheckpoint(_PICKLED) from error
        model, info = _from_pretrained(reference, config, use_safetensors=False)
    if info["missing_keys"]:
        raise UnsupportedCheckpoint(
            f"has no trained weights for {sorted(info['missing_keys'])[:3]}: fine-tune it for "
            "sequence classification first"
        )
    surplus = sorted(k for k in info["unexpected_keys"] if not k.endswith(_HARMLESS))
    if surplus:
        raise UnsupportedCheckpoint(
            f"has weights that its architecture does not use, such as {surplus[:3]}: its config is "
            "of another model, or it needs code of its own"
        )
    model = model.eval().float()
    _require_finite(model)
    return model


# Counters that transformers once stored and now makes itself.
_HARMLESS = ("position_ids", "num_batches_tracked")


def load_tokenizer(reference: str, model: Any) -> Any:  # noqa: ANN401  # untyped library
    """The fast tokenizer, whose every token the model has an embedding for.

    Raises:
        UnsupportedCheckpoint: Not there, slow, without a pad token, or for another vocabulary.
    """
    from transformers import AutoTokenizer

    with refusing("its tokenizer "), quiet_transformers():
        tokenizer = AutoTokenizer.from_pretrained(reference, use_fast=True, trust_remote_code=False)
    if not tokenizer.is_fast:
        raise UnsupportedCheckpoint("has no fast tokenizer (tokenizer.json), which serving needs")
    if tokenizer.pad_token_id is None:
        raise UnsupportedCheckpoint(
            "has no pad token in its tokenizer's config, so that pairs of different lengths cannot "
            "share a batch; name the one that it was trained with (pad_token)"
        )
    n_known = model.get_input_embeddings().num_embeddings
    largest = max(tokenizer.get_vocab().values())
    if largest >= n_known:
        raise UnsupportedCheckpoint(
            f"has a tokenizer with ids up to {largest}, but embeddings for {n_known} tokens: the "
            "two are not of the same model"
        )
    return tokenizer


_PICKLED = (
    "cannot be loaded: it has no weights in safetensors format. Pickled weights "
    "(pytorch_model.bin) can carry program code, so they are opened only with --allow-pickle; or "
    "save the model again with save_pretrained, which writes safetensors"
)


def _from_pretrained(reference: str, config: Any, *, use_safetensors: bool) -> Any:  # noqa: ANN401
    from transformers import AutoModelForSequenceClassification

    with refusing(), quiet_transformers():  # what it would warn of is refused by the callers
        return AutoModelForSequenceClassification.from_pretrained(
            reference,
            config=config,
            use_safetensors=use_safetensors,
            weights_only=True,
            trust_remote_code=False,
            output_loading_info=True,
        )


def _require_finite(model: Any) -> None:  # noqa: ANN401  # untyped library
    import torch

    for name, tensor in model.state_dict().items():
        if not torch.isfinite(tensor).all():
            raise UnsupportedCheckpoint(f"has NaN or infinite numbers in its weights, in {name}")


def _has_only_pickles(folder: Path) -> bool:
    if not folder.is_dir() or any(folder.glob("*.safetensors*")):
        return False
    return any(folder.glob("pytorch_model*.bin*"))
