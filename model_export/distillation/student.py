"""The student before training: the teacher with some of its layers taken out."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from torch import nn

from model_export.errors import UnsupportedCheckpoint
from model_export.pooled_classifier import PooledClassifier

PRUNABLE = ("bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert", "mpnet")
"""Families whose layers are all alike, in one list, and know nothing of their place in it."""


def make_student(teacher: Any, layers: Sequence[int]) -> Any:  # noqa: ANN401  # untyped library
    """A copy of the teacher with these of its layers and one logit.

    Its head is the teacher's where that has one logit too, else a new one from torch's own
    random state: what the teacher's logits mean is in the targets then.

    Args:
        teacher: transformers sequence classifier.
        layers: Numbers of layers to keep, rising.

    Raises:
        UnsupportedCheckpoint: A family whose layers cannot be taken out one by one, or a pooled
            head.
    """
    family = teacher.config.model_type
    if family not in PRUNABLE:
        raise UnsupportedCheckpoint(
            f"a {family} teacher cannot lend its layers to a student; these can: "
            f"{', '.join(PRUNABLE)}"
        )
    if isinstance(teacher, PooledClassifier):
        raise UnsupportedCheckpoint(
            "a teacher with a pooled head (finetune --pooling) cannot lend its layers to a "
            "student; take one with the head of its family"
        )
    student = copy.deepcopy(teacher).requires_grad_(True)  # merging an adapter leaves all frozen
    config = student.config
    parent, name, stack = _layer_list(student, config.num_hidden_layers)
    setattr(parent, name, nn.ModuleList(stack[index] for index in layers))
    config.num_hidden_layers = len(layers)
    config.problem_type = None
    if config.num_labels != 1:
        config.num_labels = student.num_labels = 1
        _replace_head(student)
    return student


def n_layers_of(model: Any) -> int:  # noqa: ANN401  # as above
    """Layers of a transformers model."""
    return int(model.config.num_hidden_layers)


def _layer_list(model: nn.Module, n_layers: int) -> tuple[nn.Module, str, nn.ModuleList]:
    """The list of layers, the module that holds it, and its name there."""
    (found,) = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, nn.ModuleList) and len(child) == n_layers
    ]
    return found


def _replace_head(student: Any) -> None:  # noqa: ANN401  # as above
    """The last linear map of the classifier, with one output and transformers' usual start."""
    head = student.classifier
    holder, name = (student, "classifier") if isinstance(head, nn.Linear) else (head, "out_proj")
    fresh = nn.Linear(getattr(holder, name).in_features, 1)
    nn.init.normal_(fresh.weight, std=student.config.initializer_range)
    nn.init.zeros_(fresh.bias)
    setattr(holder, name, fresh)
