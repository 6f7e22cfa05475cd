"""Pairs as a Trainer takes them: encoded by the service's own encoder, alone or in lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DataCollatorWithPadding, PreTrainedTokenizerBase

from service.scoring.encoding import EncodedPair, PairEncoder

Row = dict[str, Any]
"""`input_ids` and, where the model has them, `token_type_ids`; or `features`; and `labels`."""

SCORING_BATCH_PAIRS = 64


def encode_pairs(encoder: PairEncoder, texts: Sequence[tuple[str, str]]) -> list[EncodedPair]:
    """(query, ad text) pairs as the service reads them: what is cut there is cut in training."""
    return [encoder.encode(query, [ad_text])[0] for query, ad_text in texts]


def to_rows(
    encoded: Sequence[EncodedPair], labels: Sequence[Sequence[float]], *, with_segments: bool
) -> list[Row]:
    """A row for each pair.

    Args:
        encoded: n pairs.
        labels: What each teaches, n of the same length.
        with_segments: Whether the model tells query and ad apart by segment ids.
    """
    rows = []
    for pair, label in zip(encoded, labels, strict=True):
        row: Row = {"input_ids": pair.ids.tolist(), "labels": list(label)}
        if with_segments:
            row["token_type_ids"] = pair.type_ids.tolist()
        rows.append(row)
    return rows


def into_lists(
    rows: Sequence[Row], queries: Sequence[str], list_pairs: int, seed: int
) -> list[list[Row]]:
    """The rows of each query together, for a ranking loss.

    Queries with more than `list_pairs` rows are split by chance into lists of about one size. A
    list whose rows all teach the same cannot be ranked, and is left out.

    Args:
        rows: n rows.
        queries: n queries.
        list_pairs: Most rows in a list.
        seed: Of the splits.
    """
    rng = np.random.default_rng(seed)
    by_query: dict[str, list[Row]] = {}
    for row, query in zip(rows, queries, strict=True):
        by_query.setdefault(query, []).append(row)
    lists = [
        [own[index] for index in part]
        for own in by_query.values()
        for part in np.array_split(rng.permutation(len(own)), -(-len(own) // list_pairs))
    ]
    return [part for part in lists if len({row["labels"][0] for row in part}) > 1]


@dataclass(frozen=True, slots=True)
class Collator:
    """Rows, or lists of rows, as one padded batch.

    Its `labels` have a last column with the number of each row's list in the batch.
    """

    tokenizer: PreTrainedTokenizerBase

    def __call__(self, items: Sequence[Row | list[Row]]) -> dict[str, torch.Tensor]:
        """The batch, by the names of the model's inputs."""
        lists = [item if isinstance(item, list) else [item] for item in items]
        labels = torch.tensor(
            [[*row["labels"], number] for number, part in enumerate(lists) for row in part],
            dtype=torch.float32,
        )
        inputs = [{k: v for k, v in row.items() if k != "labels"} for part in lists for row in part]
        if "features" in inputs[0]:
            return {"features": torch.stack([row["features"] for row in inputs]), "labels": labels}
        return {**DataCollatorWithPadding(self.tokenizer)(inputs), "labels": labels}


def compute_rows(
    compute: Callable[..., torch.Tensor],
    rows: Sequence[Row],
    collate: Callable[[Sequence[Row]], dict[str, torch.Tensor]],
    device: torch.device,
) -> NDArray[np.float32]:
    """(n, k) of what `compute` makes of the model's inputs, in the order of `rows`."""
    order = np.argsort([len(row.get("input_ids", ())) for row in rows], kind="stable")
    parts = []
    for start in range(0, len(rows), SCORING_BATCH_PAIRS):
        batch = collate([rows[index] for index in order[start : start + SCORING_BATCH_PAIRS]])
        inputs = {name: value.to(device) for name, value in batch.items() if name != "labels"}
        with torch.inference_mode():
            parts.append(compute(**inputs).float().cpu().numpy())
    values = np.concatenate(parts)
    ordered = np.empty_like(values)
    ordered[order] = values
    return ordered


def logits_of_rows(
    model: Any,  # noqa: ANN401  # untyped library
    rows: Sequence[Row],
    collate: Callable[[Sequence[Row]], dict[str, torch.Tensor]],
) -> NDArray[np.float32]:
    """(n, k) logits of the model, which is left in eval mode, in the order of `rows`."""
    model.eval()
    device = next(model.parameters()).device
    return compute_rows(lambda **inputs: model(**inputs)["logits"], rows, collate, device)
