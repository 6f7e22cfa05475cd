"""A model as batching knows it: what runs its pairs, and what they cost.

Pairs of two models wait at once while one takes over from the other. Each pair is run by the model
that it was encoded for, and a batch holds pairs of one generation only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from service.batching.cost_model import BatchCost, CostModel


class Encoded(Protocol):
    """What batching needs to know of an encoded pair."""

    @property
    def length_tokens(self) -> int:
        """Tokens before padding."""


E = TypeVar("E", bound=Encoded)
E_contra = TypeVar("E_contra", contravariant=True)


class Model(Protocol[E_contra]):
    """What runs a batch. Called from several threads at once."""

    def logits(self, pairs: Sequence[E_contra]) -> NDArray[np.float32]:
        """(n, k) logits in the order of the pairs."""


class Generation(Generic[E]):
    """One loaded model. Two are the same only if they are one object.

    Attributes:
        model: Runs its batches.
        cost_model: Predicts them and learns from them; guarded by the batcher's lock.
    """

    __slots__ = ("__weakref__", "cost_model", "model")

    def __init__(self, model: Model[E], cost_model: CostModel) -> None:
        self.model = model
        self.cost_model = cost_model

    @property
    def cost(self) -> BatchCost:
        """What its batches are predicted to take, as it stands."""
        return self.cost_model.cost
