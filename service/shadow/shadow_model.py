"""The shadow's model: opened like the one that serves, with a session and memory of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from service.batching.planner import BatchLimits
from service.domain import Ad
from service.model_life.loaded_model import ModelSource
from service.scoring.bundle import Bundle
from service.startup_errors import InvalidSetting, StartupError


@dataclass(frozen=True, slots=True)
class ShadowModel:
    """A model that has passed its self-test.

    Attributes:
        bundle: Its facts, its text side and its session.
        one_pair_s: What its longest pair takes alone: the most that an auction waits for it.
    """

    bundle: Bundle
    one_pair_s: float

    def score(self, query: str, ad: Ad) -> float:
        """The calibrated score of one pair; slow, so it is called in a thread.

        Raises:
            InferenceFailed: The runtime refused the pair.
            ArithmeticError: The score is not a number.
        """
        [score] = self.bundle.to_scores(self.bundle.model.logits(self.bundle.encode(query, [ad])))
        if not math.isfinite(score):
            raise ArithmeticError("the model gave a score that is not a number")
        return float(score)


def load_shadow(path: Path, provider: str, limits: BatchLimits) -> ShadowModel:
    """Open the bundle at `path`: verified, warmed up, tested.

    Args:
        path: Its folder.
        provider: Execution provider.
        limits: Of the batches of the model that serves; the shadow must be able to take its place.

    Raises:
        InvalidSetting: It could not be served here; the message says why.
    """
    try:
        loaded = ModelSource(path, provider, limits, cache_bytes=0).load()
    except StartupError as error:
        raise InvalidSetting(f"shadow_bundle: {error}") from error
    assert loaded is not None  # noqa: S101  # there is none before it that it could equal
    longest = loaded.bundle.manifest.inputs.max_length_tokens
    return ShadowModel(loaded.bundle, loaded.generation.cost.batch_s(1, float(longest)))
