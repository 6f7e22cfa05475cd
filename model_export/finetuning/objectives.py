"""What each head and loss makes of labelled pairs: names of labels, targets, and the loss itself.

Row i of the targets is (target, number of its list): ranking losses compare what shares a list,
the others read the first column alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from model_export.errors import BadPairsFile
from model_export.finetuning.ranking_losses import ranking_loss
from model_export.pairs import LabelledPair
from model_export.recipe import FinetuneRecipe, human_target

CLASSES = ("irrelevant", "relevant")
MOST_GRADES = 20  # beyond, they are scores: one logit with the loss mse

Loss = Callable[..., torch.Tensor]
"""As the Trainer calls it: (model outputs, targets (n, 2), number of items) -> scalar."""


def label_names(recipe: FinetuneRecipe, pairs: Sequence[LabelledPair]) -> tuple[str, ...]:
    """Names of the logits, worst first, as `read_head` reads them; none for a single logit.

    Raises:
        BadPairsFile: Pairs have no grade, or their scale fewer than three or more than
            `MOST_GRADES`.
    """
    if recipe.head == "logit":
        return ()
    if recipe.head == "classes":
        return CLASSES
    return tuple(f"grade_{grade:g}" for grade in _grades_of_scale(pairs))


def targets(recipe: FinetuneRecipe, pairs: Sequence[LabelledPair]) -> list[float]:
    """What each pair teaches: a grade's number, a grade to rank by, or a probability.

    Ranked pairs are brought to the widest scale that any of them has, by gains; for `lambda`, which
    makes gains of them again, these are those of NDCG.
    """
    if recipe.head == "grades":
        place = {grade: float(number) for number, grade in enumerate(_grades_of_scale(pairs))}
        return [place[pair.grade.value] for pair in pairs if pair.grade is not None]
    if recipe.ranks:
        widest = max(pair.judgement.best for pair in pairs)
        return [pair.judgement.value_of(widest) for pair in pairs]
    return [human_target(pair, recipe.rater_share) for pair in pairs]


def raters_note(recipe: FinetuneRecipe, pairs: Sequence[LabelledPair]) -> str | None:
    """A sentence on how many `targets` have raters' votes in them; None where none has."""
    voted = sum(bool(pair.rater_votes) for pair in pairs)
    if not (voted and recipe.rater_share) or recipe.ranks or recipe.head == "grades":
        return None
    return (
        f"raters' votes are {recipe.rater_share:.0%} of the target of {voted} of the {len(pairs)} "
        "training pairs, the label is the rest; --rater-share 0 leaves the label alone"
    )


def loss_of(recipe: FinetuneRecipe) -> Loss:
    """The recipe's loss."""
    if recipe.ranks:
        return ranking_loss(recipe.loss)
    if recipe.head == "grades":
        return _mean_of(_grade_loss)
    if recipe.head == "classes":
        return _mean_of(_class_loss)
    return _mean_of(_score_loss if recipe.loss == "mse" else _binary_loss)


def binary_loss() -> Loss:
    """Binary cross-entropy of one logit with probabilities."""
    return _mean_of(_binary_loss)


def _grades_of_scale(pairs: Sequence[LabelledPair]) -> list[float]:
    """The grades of the pairs' one scale, worst first, whether or not any pair has them.

    All whole ones, or those that occur and both ends where some are not whole: nobody says what
    else lies between.
    """
    bare = sum(pair.grade is None for pair in pairs)
    if bare:
        raise BadPairsFile(
            f"{bare} of {len(pairs)} training pairs have no 'grade', which head grades learns; "
            "take head logit or classes, or grade them"
        )
    best = max(pair.judgement.best for pair in pairs)
    grades = {0.0, best, *(pair.judgement.value for pair in pairs)}
    if all(grade % 1 == 0 for grade in grades):
        grades.update(map(float, range(int(best))))
    if not 3 <= len(grades) <= MOST_GRADES:
        raise BadPairsFile(
            f"the training pairs' scale of 0-{best:g} has {len(grades)} grades, and head grades "
            f"takes 3 to {MOST_GRADES}; take head classes for two, head logit with the loss mse "
            "for many"
        )
    return sorted(grades)


def _mean_of(loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Loss:
    def compute(
        outputs: Any,  # noqa: ANN401  # untyped library
        labels: torch.Tensor,
        num_items_in_batch: object = None,  # noqa: ARG001  # the Trainer's signature
    ) -> torch.Tensor:
        return loss(outputs["logits"].float(), labels[:, 0])

    return compute


def _binary_loss(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.binary_cross_entropy_with_logits(logits[:, 0], target)


def _score_loss(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Of the score that is served, so that the head's number stays a log-odds."""
    return functional.mse_loss(torch.sigmoid(logits[:, 0]), target)


def _class_loss(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits, torch.stack([1 - target, target], dim=1))


def _grade_loss(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits, target.long())
