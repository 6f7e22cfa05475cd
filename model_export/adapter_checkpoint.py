"""An adapter on its base weights, loaded as what the export takes."""

from __future__ import annotations

import hashlib
from pathlib import Path

from model_export.adapter import WEIGHTS_FILE, load_merged, read_facts
from model_export.base_weights import resolve_base, shown_base
from model_export.checkpoint import Checkpoint, named, read_calibration
from model_export.library_calls import quiet_transformers
from model_export.read_head import read_head
from service.scoring.bundle_files import sha256_of


def load_adapted(adapter: Path, base: str | None, name: str | None) -> Checkpoint:
    """A base model with an adapter of `finetune` merged in.

    Args:
        adapter: Folder of the adapter.
        base: Folder or hub id of the base weights; None looks where the adapter says. Their hash
            must be the recorded one either way.
        name: Name of the model; None takes the folder's.

    Raises:
        BaseWeightsMissing: They were found nowhere.
        AdapterMismatch: The adapter was made for other weights.
        UnsupportedCheckpoint: The meaning of its head is unclear, or its calibration is none.
    """
    from transformers import AutoTokenizer

    facts = read_facts(adapter)
    with quiet_transformers():  # it warns of a new head, which the adapter then fills
        model = load_merged(adapter, base)
    tokenizer = AutoTokenizer.from_pretrained(resolve_base(base or facts.base, facts.base_sha256))
    with named(str(adapter)):
        head = read_head(model.config, None)
        calibration = read_calibration(adapter)
    weights_sha256 = sha256_of(adapter / WEIGHTS_FILE)
    return Checkpoint(
        model=model,
        tokenizer=tokenizer,
        name=name or adapter.resolve().name,
        source=f"{shown_base(facts.base)} with adapter {adapter.resolve().name}",
        source_sha256=hashlib.sha256((facts.base_sha256 + weights_sha256).encode()).hexdigest(),
        head=head,
        template=facts.ad_template,
        max_length_tokens=facts.max_pair_tokens,
        calibration=calibration,
    )
