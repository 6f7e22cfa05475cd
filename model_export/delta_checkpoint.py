"""A student that is stored as a weight delta, loaded as what the export takes."""

from __future__ import annotations

import hashlib
from pathlib import Path

from model_export.base_weights import resolve_base, shown_base
from model_export.checkpoint import Checkpoint, read_calibration
from model_export.weight_delta import load_delta, read_facts
from service.scoring.ad_template import AdTemplate
from service.scoring.head import Head


def load_delta_checkpoint(folder: Path, base: str | None, name: str | None) -> Checkpoint:
    """Base weights with a student's delta on those of their layers that it kept.

    Args:
        folder: Of the delta.
        base: Folder or hub id of the base weights; None looks where the delta says. Their hash
            must be the recorded one either way.
        name: Name of the model; None takes the folder's.

    Raises:
        BaseWeightsMissing: They were found nowhere.
        AdapterMismatch: They have another hash.
        DamagedDelta: The delta is not the file that was written.
        UnsupportedCheckpoint: What lies beside it as its calibration is none.
    """
    from transformers import AutoTokenizer

    facts = read_facts(folder)
    model = load_delta(folder, base)
    base_folder = resolve_base(base or facts.base, facts.base_sha256)
    layers = ", ".join(str(number) for number in facts.layers)
    hashes = facts.base_sha256 + facts.delta_sha256 + layers
    return Checkpoint(
        model=model,
        tokenizer=AutoTokenizer.from_pretrained(base_folder),
        name=name or folder.resolve().name,
        source=f"layers {layers} of {shown_base(facts.base)} with delta {folder.resolve().name}",
        source_sha256=hashlib.sha256(hashes.encode()).hexdigest(),
        head=Head(kind="binary", n_logits=1),
        template=AdTemplate(),
        max_length_tokens=facts.max_pair_tokens,
        calibration=read_calibration(folder),
    )
