"""From ad texts to an encoder that has read them, which `finetune --base` starts from."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertForPreTraining,
    set_seed,
)

from model_export.base_weights import resolve_base, weights_sha256
from model_export.checkpoint_config import load_config
from model_export.errors import ExportError, UnsupportedCheckpoint
from model_export.finetuning.run_folder import close_run, open_run, run_folder
from model_export.library_calls import quiet_transformers, refusing
from model_export.loaded_weights import head_prefixes, refuse_random_weights
from model_export.out_folder import move_into, partial_folder, write_report
from model_export.pretraining.ad_texts import AdText, read_texts
from model_export.pretraining.loss import masked_nats, pretraining_loss
from model_export.pretraining.masked_rows import MASKED, masking, to_rows
from model_export.pretraining.recipe import REPORT_FILE, PretrainRecipe
from model_export.training import FIGURE, Judge, StageSettings, train_stage
from model_export.training_rows import Row
from model_export.write_checkpoint import save_checkpoint
from service.scoring.bundle_files import sha256_of

STAGE = "pretraining"
JUDGED_BATCH_TEXTS = 64
MIN_HELD_OUT = 20
"""Fewer texts have too few masks to tell one epoch from another."""


@dataclass(frozen=True, slots=True)
class PretrainReport:
    """What was read, how long it took and what came of it.

    Attributes:
        recipe: All hyper-parameters.
        n_texts: To learn from.
        n_held_out: Only judged on.
        epochs: For each `epoch`, its mean `loss`, and in `quality` what the held-out texts said:
            `masked_loss` (nats a masked position) and `perplexity`, its exponential.
        before: The same of the base, whose masked words are guessed by a head that knows none yet
            where the base brings no such head.
        training_s: Seconds of this run.
    """

    recipe: PretrainRecipe
    n_texts: int
    n_held_out: int
    epochs: tuple[dict[str, Any], ...]
    before: dict[str, float]
    training_s: float


def pretrain(
    files: Sequence[Path],
    base: str,
    out: Path,
    recipe: PretrainRecipe,
    *,
    resume: bool = False,
    show_progress: bool = True,
    tell: Callable[[str], None] = lambda _: None,
) -> PretrainReport:
    """Go on with the pre-training of `base`, and write its encoder to the folder `out`.

    Args:
        files: Of texts, see `read_texts`.
        base: Folder, hub id or package of an encoder, see `resolve_base`.
        out: Gets the encoder as it was after its best epoch on the held-out texts, its tokenizer
            and `pretraining_report.json`.
        recipe: Hyper-parameters; the same ones on the same kind of machine give the same weights.
        resume: Go on with a run for `out` that was stopped, after the last epoch that it ended.
        show_progress: Whether to draw a progress bar.
        tell: Told of each epoch.

    Raises:
        BadPairsFile: A file cannot be used.
        BaseWeightsMissing: The base was found nowhere.
        ExportError: The base, the recipe and the texts do not fit, or a stopped run is in the way.
    """
    texts = read_texts(files)
    learnt, held_out = _split(texts, recipe)
    if recipe.next_sentence and sum(bool(text.second) for text in learnt) < 2:
        raise ExportError("--next-sentence needs texts in two parts, such as title and description")
    folder = resolve_base(base)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if tokenizer.mask_token is None:
        raise UnsupportedCheckpoint(f"base model {folder.name} has no mask token")
    started_s = time.monotonic()
    run = run_folder(out)
    facts = {
        "recipe": asdict(recipe),
        "base weights": weights_sha256(folder),
        "files": [sha256_of(path) for path in files],
    }
    open_run(run, facts, resume=resume)
    set_seed(recipe.seed)
    model = _load(folder, recipe)
    judge = _judge(to_rows(held_out, tokenizer, recipe), tokenizer, recipe, tell)
    before = dict(judge(model, 0)["quality"])
    epochs = train_stage(
        model,
        to_rows(learnt, tokenizer, recipe),
        masking(tokenizer, recipe),
        pretraining_loss,
        StageSettings(
            epochs=recipe.epochs,
            learning_rate=recipe.learning_rate,
            batch_items=recipe.batch_texts,
            warmup_share=recipe.warmup_share,
            weight_decay=recipe.weight_decay,
            seed=recipe.seed,
            keep_best=True,
            show_progress=show_progress,
        ),
        run / STAGE,
        judge=judge,
    )
    report = PretrainReport(
        recipe=recipe,
        n_texts=len(learnt),
        n_held_out=len(held_out),
        epochs=tuple(epochs),
        before=before,
        training_s=round(time.monotonic() - started_s, 1),
    )
    _write(_encoder_of(model, folder), tokenizer, out, report)
    close_run(run)
    return report


def _split(texts: Sequence[AdText], recipe: PretrainRecipe) -> tuple[list[AdText], list[AdText]]:
    """The texts to learn from, and those that are held out."""
    n_held_out = max(MIN_HELD_OUT, round(recipe.held_out_share * len(texts)))
    if len(texts) < 2 * MIN_HELD_OUT:
        raise ExportError(
            f"there are {len(texts)} different texts, of which 40 are needed at least"
        )
    order = np.random.default_rng(recipe.seed).permutation(len(texts))
    shuffled = [texts[index] for index in order]
    return shuffled[n_held_out:], shuffled[:n_held_out]


def _load(folder: Path, recipe: PretrainRecipe) -> Any:  # noqa: ANN401  # untyped library
    """The base with a head that guesses masked words; they share the word vectors."""
    config = load_config(str(folder))
    if recipe.next_sentence and config.model_type != "bert":
        raise UnsupportedCheckpoint(
            f"base model {folder.name} is of the family {config.model_type}: --next-sentence is "
            "for BERT"
        )
    kind: Any = BertForPreTraining if recipe.next_sentence else AutoModelForMaskedLM
    with refusing(), quiet_transformers():  # it warns of the new head
        model, info = kind.from_pretrained(
            folder,
            config=config,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    refuse_random_weights(info, f"base model {folder.name}", head_prefixes(model))
    return model


def _judge(
    rows: Sequence[Row],
    tokenizer: Any,  # noqa: ANN401  # untyped library
    recipe: PretrainRecipe,
    tell: Callable[[str], None],
) -> Judge:
    """By the held-out texts, whose masks are the same each time."""
    collate = masking(tokenizer, recipe)
    rows = sorted(rows, key=lambda row: len(row["input_ids"]))
    parts = [
        rows[start : start + JUDGED_BATCH_TEXTS]
        for start in range(0, len(rows), JUDGED_BATCH_TEXTS)
    ]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        batches = [collate(part) for part in parts]

    def judge_epoch(model: Any, epoch: float) -> dict[str, Any]:  # noqa: ANN401  # as above
        loss = masked_loss(model, batches)
        tell(f"epoch {epoch:g}: perplexity of held-out masked words {math.exp(loss):.1f}")
        return {FIGURE: -loss, "quality": {"masked_loss": loss, "perplexity": math.exp(loss)}}

    return judge_epoch


def masked_loss(model: Any, batches: Sequence[dict[str, Any]]) -> float:  # noqa: ANN401  # untyped library
    """Mean cross-entropy in nats over all masked positions of the batches."""
    was_training, device = model.training, next(model.parameters()).device
    total, n_masked = 0.0, 0
    model.eval()
    with torch.inference_mode():
        for batch in batches:
            inputs = {k: value.to(device) for k, value in batch.items() if k != "labels"}
            nats, count = masked_nats(model(**inputs), batch["labels"][MASKED].to(device))
            total += float(nats)
            n_masked += count
    model.train(was_training)
    return total / max(1, n_masked)


def _encoder_of(model: Any, base: Path) -> Any:  # noqa: ANN401  # untyped library
    """The trained encoder, with the base's pooler where the training had none."""
    with refusing(), quiet_transformers():
        encoder, info = AutoModel.from_pretrained(
            base, use_safetensors=True, trust_remote_code=False, output_loading_info=True
        )
    state = {name: value.cpu() for name, value in model.base_model.state_dict().items()}
    encoder.load_state_dict(state, strict=False)
    if not state.keys() >= set(info["missing_keys"]):
        encoder.pooler = None  # it would be random numbers
    return encoder


def _write(encoder: Any, tokenizer: Any, out: Path, report: PretrainReport) -> None:  # noqa: ANN401  # as above
    partial = partial_folder(out)
    save_checkpoint(encoder, tokenizer, partial, None)
    write_report(partial, REPORT_FILE, report)
    move_into(partial, out)
