"""The model that each approach starts from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForSequenceClassification, BertForSequenceClassification

from model_export.checkpoint_config import load_config
from model_export.errors import UnsupportedCheckpoint
from model_export.library_calls import quiet_transformers, refusing
from model_export.loaded_weights import head_prefixes, refuse_random_weights
from model_export.pooled_classifier import PooledClassifier, load_encoder
from model_export.recipe import FinetuneRecipe
from model_export.sentence_embedding import CAT_LAYERS


def make_model(base: Path, recipe: FinetuneRecipe, labels: Sequence[str]) -> Any:  # noqa: ANN401  # untyped library
    """A classifier with the base's encoder and a head at its random start.

    Args:
        base: Folder of an encoder; a head that it brings is kept where it fits.
        recipe: Says the approach, the head and the pooling.
        labels: Names of the logits; none is one logit.

    Raises:
        UnsupportedCheckpoint: The base cannot be loaded, or is no BERT where it must be one, or has
            fewer layers than the pooling reads, or lacks weights that are not trained anew.
    """
    config = load_config(str(base))
    config.problem_type = None
    if labels:
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: number for number, label in enumerate(labels)}
    else:
        config.num_labels = 1
    if recipe.pooling == "cat4" and config.num_hidden_layers < CAT_LAYERS:
        raise UnsupportedCheckpoint(
            f"base model {base.name} has {config.num_hidden_layers} layers, and pooling cat4 reads "
            f"the last {CAT_LAYERS}; take cls or mean"
        )
    if recipe.pooling is not None:
        try:
            return PooledClassifier(load_encoder(base, config), recipe.pooling)
        except UnsupportedCheckpoint as error:
            raise UnsupportedCheckpoint(f"base model {base.name} {error}") from error
    if recipe.approach == "lora" and config.model_type != "bert":
        raise UnsupportedCheckpoint(
            f"base model {base.name} is of the family {config.model_type}: adapters are for BERT; "
            "take --approach full or features"
        )
    kind: Any = (
        BertForSequenceClassification
        if recipe.approach == "lora"
        else AutoModelForSequenceClassification
    )
    with refusing(), quiet_transformers():  # it warns of the new head
        model, info = kind.from_pretrained(
            base,
            config=config,
            use_safetensors=True,
            trust_remote_code=False,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    refuse_random_weights(info, f"base model {base.name}", head_prefixes(model))
    if recipe.approach == "lora" and "bert.pooler.dense.weight" in info["missing_keys"]:
        raise UnsupportedCheckpoint(
            f"base model {base.name} has no pooler, and an adapter is an update of one; take "
            "--approach full, which learns its own, or features, which needs none"
        )
    return model


def with_lora(model: Any, recipe: FinetuneRecipe) -> PeftModel:  # noqa: ANN401  # untyped library
    """The model frozen, with low-rank updates of all linear layers and a head that learns whole."""
    config = LoraConfig(
        r=recipe.lora_rank,
        lora_alpha=recipe.lora_alpha,
        target_modules=["query", "key", "value", "dense"],  # all linear layers of BERT
        modules_to_save=["classifier"],  # starts at random, so a low-rank update of it is no use
        task_type="SEQ_CLS",
    )
    return get_peft_model(model, config)
