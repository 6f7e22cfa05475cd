"""The stages of a run: rows for each, the model that learns them, and how epochs are judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn
from transformers import PreTrainedTokenizerBase

from model_export.errors import UnsupportedCheckpoint
from model_export.evaluate import judge
from model_export.finetuning.checks import deciding_figure, mean_figure, warnings_of
from model_export.finetuning.models import make_model, with_lora
from model_export.finetuning.objectives import binary_loss, loss_of, raters_note, targets
from model_export.pair_length import longest_pair
from model_export.pairs import LabelledPair
from model_export.pooled_classifier import PooledClassifier
from model_export.read_head import read_head
from model_export.recipe import FinetuneRecipe
from model_export.similarity_teacher import SimilarityTeacher
from model_export.to_onnx import takes_segments
from model_export.training import FIGURE, Judge, StageSettings, TargetRow, train_stage
from model_export.training_rows import (
    Collator,
    Row,
    compute_rows,
    encode_pairs,
    into_lists,
    logits_of_rows,
    to_rows,
)
from service.scoring.calibration import sigmoid
from service.scoring.encoding import EncodedPair, PairEncoder
from service.scoring.head import margin

IMITATION, LABELS = "imitation", "labels"
"""Folders of the two stages."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be learnt, and from where.

    Attributes:
        base: Folder of the encoder.
        tokenizer: Its tokenizer.
        labels: Names of the logits; none for a single logit.
        pairs: Training pairs, hard negatives included.
        dev: Held-out pairs by the name of their file.
        recipe: Hyper-parameters.
        show_progress: Whether to draw progress bars.
        tell: Told of doubtful data and of each epoch.
    """

    base: Path
    tokenizer: PreTrainedTokenizerBase
    labels: tuple[str, ...]
    pairs: Sequence[LabelledPair]
    dev: Mapping[str, Sequence[LabelledPair]]
    recipe: FinetuneRecipe
    show_progress: bool
    tell: Callable[[str], None]


def train(task: Task, folder: Path) -> tuple[Any, list[dict[str, Any]]]:
    """Run all stages, from where `folder` left off.

    Returns:
        The model, with low-rank updates (lora) or a whole classifier; and the epochs of the last
        stage, see `train_stage`.

    Raises:
        UnsupportedCheckpoint: The base cannot be trained so, or read so long pairs.
    """
    recipe = task.recipe
    whole = make_model(task.base, recipe, task.labels)
    reader = _Reader(whole, task)
    encoded = reader.encode(_texts(task, task.pairs))
    for sentence in warnings_of(task.pairs, task.dev, encoded, recipe.max_pair_tokens):
        task.tell(f"warning: {sentence}")
    note = raters_note(recipe, task.pairs)
    if note is not None:
        task.tell(f"note: {note}")
    wanted = targets(recipe, task.pairs)
    model = with_lora(whole, recipe) if recipe.approach == "lora" else whole
    if recipe.imitation_pairs or recipe.teacher_share:
        wanted = _imitate(model, task, reader, wanted, folder)
    rows = reader.rows(encoded, wanted)
    dev_pairs = [pair for own in task.dev.values() for pair in own]
    dev_rows = reader.rows(reader.encode(_texts(task, dev_pairs)), [0.0] * len(dev_pairs))
    learner = model
    if recipe.approach == "features":
        learner = _HeadAlone(whole.head)
        rows, dev_rows = (_features_of(whole, some, reader) for some in (rows, dev_rows))
    items: Sequence[Row | list[Row]] = rows
    if recipe.ranks:
        queries = [pair.query for pair in task.pairs]
        items = into_lists(rows, queries, recipe.list_pairs, recipe.seed)
    n_pairs = sum(len(item) if isinstance(item, list) else 1 for item in items)
    settings = StageSettings(
        epochs=recipe.epochs,
        learning_rate=recipe.learning_rate,
        batch_items=max(1, round(recipe.batch_pairs * len(items) / n_pairs)),
        warmup_share=recipe.warmup_share,
        weight_decay=recipe.weight_decay,
        seed=recipe.seed,
        patience=recipe.patience,
        keep_best=recipe.keep == "best",
        by_length=not recipe.ranks and recipe.approach != "features",
        show_progress=task.show_progress,
    )
    epochs = train_stage(
        learner,
        items,
        reader.collate,
        loss_of(recipe),
        settings,
        folder / LABELS,
        judge=_judge(task, whole.config, dev_rows, reader.collate),
    )
    return model, epochs


class _Reader:
    """Makes rows of texts, as the model to train will read them in serving."""

    def __init__(self, model: Any, task: Task) -> None:  # noqa: ANN401  # untyped library
        tokenizer, length = task.tokenizer, task.recipe.max_pair_tokens
        longest = longest_pair(model, tokenizer)
        if length > longest:
            raise UnsupportedCheckpoint(
                f"base model {task.base.name} reads at most {longest} tokens, and max_pair_tokens "
                f"is {length}"
            )
        backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        try:
            self._encoder = PairEncoder(backend, length)
        except ValueError as error:
            raise UnsupportedCheckpoint(f"base model {task.base.name}: {error}") from error
        self._with_segments = takes_segments(model, tokenizer)
        self.collate = Collator(tokenizer)

    def encode(self, texts: Sequence[tuple[str, str]]) -> list[EncodedPair]:
        return encode_pairs(self._encoder, texts)

    def rows(self, encoded: Sequence[EncodedPair], wanted: Sequence[float]) -> list[Row]:
        labels = [(target,) for target in wanted]
        return to_rows(encoded, labels, with_segments=self._with_segments)


def _texts(task: Task, pairs: Sequence[LabelledPair]) -> list[tuple[str, str]]:
    render = task.recipe.ad_template.render
    return [(pair.query, render(pair.ad)) for pair in pairs]


def _imitate(
    model: Any,  # noqa: ANN401  # untyped library
    task: Task,
    reader: _Reader,
    wanted: Sequence[float],
    folder: Path,
) -> list[float]:
    """The first stage; returns the targets of the second with the teacher's share in them."""
    recipe = task.recipe
    labelled = [
        TargetRow(query, ad_text, target)
        for (query, ad_text), target in zip(_texts(task, task.pairs), wanted, strict=True)
    ]
    teacher = SimilarityTeacher(task.base, labelled, show_progress=task.show_progress)
    blended = [row.target for row in teacher.blend_into(labelled, recipe.teacher_share)]
    if not recipe.imitation_pairs:
        return blended
    made = teacher.make_rows(
        recipe.imitation_pairs,
        recipe.imitation_pairs_per_query,
        recipe.pseudo_query_share,
        recipe.seed,
    )
    settings = StageSettings(
        epochs=1,
        learning_rate=recipe.imitation_learning_rate,
        batch_items=recipe.batch_pairs,
        warmup_share=recipe.warmup_share,
        weight_decay=recipe.weight_decay,
        seed=recipe.seed,
        show_progress=task.show_progress,
    )
    encoded = reader.encode([(row.query, row.ad_text) for row in made])
    rows = reader.rows(encoded, [row.target for row in made])
    train_stage(model, rows, reader.collate, binary_loss(), settings, folder / IMITATION)
    return blended


class _HeadAlone(nn.Module):
    """The head of a pooled classifier, on vectors that are computed already."""

    def __init__(self, head: nn.Linear) -> None:
        super().__init__()
        self.head = head

    def forward(self, features: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"logits": self.head(features)}


def _features_of(model: PooledClassifier, rows: Sequence[Row], reader: _Reader) -> list[Row]:
    """The rows with what the head reads in place of tokens."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model.eval().to(device)
    features = torch.from_numpy(compute_rows(model.pooled, rows, reader.collate, device))
    return [
        {"features": own, "labels": row["labels"]} for own, row in zip(features, rows, strict=True)
    ]


def _judge(
    task: Task,
    config: Any,  # noqa: ANN401  # untyped library
    rows: Sequence[Row],
    collate: Collator,
) -> Judge:
    """By the dev pairs; says a line of each epoch."""
    head = read_head(config, None)
    figure = deciding_figure(task.recipe)

    def judge_epoch(model: Any, epoch: float) -> dict[str, Any]:  # noqa: ANN401  # as above
        margins = margin(logits_of_rows(model, rows, collate), head)
        ends = np.cumsum([len(own) for own in task.dev.values()])[:-1]
        parts = np.split(sigmoid(margins), ends)
        quality = {
            name: judge(own, part)
            for (name, own), part in zip(task.dev.items(), parts, strict=True)
        }
        mean = mean_figure(quality, figure)
        task.tell(f"epoch {epoch:g}: mean {figure} {mean:.4f}")
        return {FIGURE: mean, "quality": {name: asdict(own) for name, own in quality.items()}}

    return judge_epoch
