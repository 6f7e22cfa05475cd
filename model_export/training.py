"""One run of transformers' Trainer over (query, ad text, target) rows, and scoring with the result.

Shared by every stage of a recipe, so that they differ in nothing but rows and learning rate.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import (
    BertForSequenceClassification,
    DataCollatorWithPadding,
    PreTrainedTokenizerBase,
    Trainer,
    TrainingArguments,
)

from service.scoring.encoding import PairEncoder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from peft import PeftModel

LOSS_KIND = "multi_label_classification"
"""transformers' `problem_type` for binary cross-entropy, which takes targets between 0 and 1."""


@dataclass(frozen=True, slots=True)
class TargetRow:
    """A pair of texts with the probability of relevance that the model shall learn."""

    query: str
    ad_text: str
    target: float


@dataclass(frozen=True, slots=True)
class StageSettings:
    """Hyper-parameters of one run of the Trainer (AdamW, linear warm-up, linear decay).

    Attributes:
        epochs: Passes over the rows.
        learning_rate: Peak, after the warm-up.
        batch_pairs: Rows per optimizer step.
        warmup_share: Part of the steps in which the learning rate grows.
        weight_decay: AdamW's.
        max_pair_tokens: Rows are cut to so many tokens, special ones included.
        seed: For the order of the rows and for dropout.
        show_progress: Whether to draw a progress bar.
    """

    epochs: int
    learning_rate: float
    batch_pairs: int
    warmup_share: float
    weight_decay: float
    max_pair_tokens: int
    seed: int
    show_progress: bool = True


def train_stage(
    model: PeftModel,
    tokenizer: PreTrainedTokenizerBase,
    rows: Sequence[TargetRow],
    settings: StageSettings,
) -> None:
    """Train the unfrozen weights of `model` in place on binary cross-entropy.

    Rows of like length share a batch: padding them to a common width would double the time.
    """
    with tempfile.TemporaryDirectory() as scratch:  # the Trainer insists on a folder
        arguments = TrainingArguments(
            output_dir=scratch,
            num_train_epochs=settings.epochs,
            learning_rate=settings.learning_rate,
            per_device_train_batch_size=settings.batch_pairs,
            warmup_ratio=settings.warmup_share,
            weight_decay=settings.weight_decay,
            lr_scheduler_type="linear",
            seed=settings.seed,
            use_cpu=not torch.cuda.is_available(),
            bf16=has_fast_bf16(),
            group_by_length=True,
            label_names=["labels"],  # a PEFT model hides the signature that they are guessed from
            remove_unused_columns=False,
            dataloader_pin_memory=torch.cuda.is_available(),
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=not settings.show_progress,
        )
        trainer = Trainer(
            model=model,
            args=arguments,
            train_dataset=_encode(tokenizer, rows, settings.max_pair_tokens),
            data_collator=DataCollatorWithPadding(tokenizer),
        )
        trainer.train()


def logits_of_rows(
    model: BertForSequenceClassification,
    tokenizer: PreTrainedTokenizerBase,
    rows: Sequence[TargetRow],
    max_pair_tokens: int,
    batch_pairs: int = 64,
) -> NDArray[np.float64]:
    """The model's only logit for each row, shape (n,), in the order of `rows`."""
    encoded = _encode(tokenizer, rows, max_pair_tokens)
    collate = DataCollatorWithPadding(tokenizer)
    order = np.argsort([len(row["input_ids"]) for row in encoded], kind="stable")
    logits = np.empty(len(rows), dtype=np.float64)
    for start in range(0, len(rows), batch_pairs):
        indices = order[start : start + batch_pairs]
        batch = collate([encoded[index] for index in indices])
        inputs = {name: value.to(model.device) for name, value in batch.items() if name != "labels"}
        with torch.inference_mode():
            logits[indices] = model(**inputs).logits[:, 0].float().cpu().numpy()
    return logits


def has_fast_bf16() -> bool:
    """Whether mixed precision pays here: a GPU with bfloat16, or a CPU with AMX tiles.

    Measured with this model on 2 cores of an Intel Xeon with AMX, 32 pairs x 64 tokens: one
    training step takes 0.36 s in bfloat16 and 0.75 s in fp32 (run of 2026-11-30).
    """
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported())
    amx_is_supported = getattr(torch.cpu, "_is_amx_tile_supported", None)  # no public name for it
    return bool(amx_is_supported and amx_is_supported())


def _encode(
    tokenizer: PreTrainedTokenizerBase, rows: Sequence[TargetRow], max_pair_tokens: int
) -> list[dict[str, Any]]:
    # The service's own encoder: what is cut in serving is what was cut in training.
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    encoder = PairEncoder(backend, max_pair_tokens)
    encoded = []
    for row in rows:
        (pair,) = encoder.encode(row.query, [row.ad_text])
        encoded.append(
            {
                "input_ids": pair.ids.tolist(),
                "token_type_ids": pair.type_ids.tolist(),
                "labels": [row.target],
            }
        )
    return encoded
