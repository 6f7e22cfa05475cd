"""The first sentences of the page: are these still the model's scores?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from model_export.report.number_text import limit, number, signed


def verdict(document: Mapping[str, Any]) -> tuple[bool, str, str]:
    """The answer and its grounds.

    Args:
        document: `report.json`.

    Returns:
        Whether every tolerance was met, the answer in a few words, and the sentences below it.
    """
    broken = [row for row in document["parity"] if not row["passed"]]
    served = document["facts"]["precision"]["weights"]
    sentences = [
        _change(document["score_change"][0]),
        _spread(document["spread"]),
        _quality(document["quality"]),
    ]
    if not broken:
        answer = f"Yes: served in {served}, these are still the model's scores"
        return True, f"{answer}, within every tolerance.", " ".join(sentences)
    answer = f"No: served in {served}, these are not the model's scores any more."
    return False, answer, " ".join([*(_missed(row) for row in broken), *sentences])


def _missed(row: Mapping[str, Any]) -> str:
    value = "not a number" if row["value"] is None else number(row["value"])
    return (
        f"{row['stage']}: {row['figure'].replace('_', ' ')} is {value}, tolerated is "
        f"{row['rule']} {limit(row['tolerance'])}."
    )


def _change(row: Mapping[str, Any]) -> str:
    rank = row["rank_agreement"]
    order = "not defined, since all scores of a side are equal" if rank is None else number(rank)
    return (
        f"Against the torch original a score changes by {number(row['mean'])} on average and by "
        f"{number(row['worst'])} at worst, over {row['n_pairs']:,} pairs; rank agreement "
        f"(Spearman) is {order}."
    )


def _spread(part: Mapping[str, Any]) -> str:
    n, worst = part["n_pairs"], part["worst"]
    tested = f"{n:,} pairs, each scored alone and in three kinds of company"
    if worst == 0:
        return f"No score depends on its batch mates or its padding: spread exactly 0 ({tested})."
    return f"A score changes by up to {number(worst)} with its batch mates or padding ({tested})."


def _quality(quality: Mapping[str, Any]) -> str:
    if not quality:
        return "No labelled pairs were given, so this page cannot say how good the scores are."
    before, after = quality["torch"], quality["served"]
    pairs = f"{after['pairs']:,} labelled pairs"
    if after["auc"] is None:
        return f"On {pairs} there is no AUC: one of the two classes is absent."
    compared = [
        f"{name} is {before[key]:.4f} with torch and {after[key]:.4f} as served "
        f"({signed(after[key] - before[key], 4)})"
        for key, name in (("auc", "AUC"), ("ndcg_at_10", "NDCG@10"))
        if before.get(key) is not None and after.get(key) is not None
    ]
    return f"On {pairs}, {', '.join(compared)}."
