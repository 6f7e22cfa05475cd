"""What scoring a request needs to know of a model: its text side and the meaning of its logits."""

from __future__ import annotations

from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from service.batching.generation import Encoded
from service.batching.pair_job import Logits
from service.caching.token_cache import Ids
from service.domain import Ad
from service.pair_seen import PairSeen


class EncodedText(Encoded, Protocol):
    """What a request's bookkeeping needs to know of an encoded pair."""

    @property
    def truncated(self) -> bool:
        """Some of the text did not fit."""


P = TypeVar("P", bound=EncodedText)
P_co = TypeVar("P_co", bound=EncodedText, covariant=True)


class PairText(Protocol[P_co]):
    """The text side of a model and the meaning of its logits, as a bundle gives them."""

    @property
    def n_logits(self) -> int:
        """Outputs of the model for each pair."""

    def ad_text(self, ad: Ad) -> str:
        """The ad as the model reads it."""

    def join(self, query_ids: Ids, ad_ids: Ids) -> P_co:
        """One pair from its two sides."""

    def to_scores(self, logits: Logits) -> NDArray[np.float64]:
        """(n,) calibrated scores of (n, k) logits."""

    def to_margins(self, logits: Logits) -> NDArray[np.float64]:
        """(n,) log-odds before calibration of (n, k) logits."""

    def see(self, query: str, ad_text: str) -> PairSeen:
        """One pair as the model reads it, token by token."""
