"""Logits by pair and model: the same pair is not computed twice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from service.caching.fixed_cache import Digester, FixedCache

Logits = NDArray[np.float32]
Flags = NDArray[np.bool_]

# Many are put into the store at the price of one, which is 4 us a pair; with more at once the event
# loop would be held up.
KEPT_AT_ONCE_PAIRS = 64


class ScoreCache:
    """Logits as the model gave them, so that a cached score equals the computed one to the bit.

    Mutable state: the store, and what is to be put into it.
    """

    def __init__(
        self,
        budget_bytes: int,
        n_logits: int,
        model_version: str,
        before: ScoreCache | None = None,
    ) -> None:
        """Allocate.

        Args:
            budget_bytes: Memory; 0 caches nothing.
            n_logits: k logits of a pair.
            model_version: Part of every key: another model's logits are never found.
            before: Another model's cache, of the same budget. Its memory is shared where entries
                are of the same size, so that a change of model takes no second cache.
        """
        self._n_logits = n_logits
        self._model_version = model_version
        if before is not None and before._n_logits == n_logits:
            store = before.store
        else:
            store = FixedCache(budget_bytes, 4 * n_logits + 1)
        self.store: FixedCache = store
        self._fresh: list[tuple[bytes, Logits, bool]] = []

    def keys(self, query: str, ads: Sequence[str]) -> list[bytes]:
        """One key for each ad's text with the query."""
        return Digester(self._model_version, query).keys(ads)

    def keys_of_pairs(self, queries: Sequence[str], ads: Sequence[str]) -> list[bytes]:
        """One key for each ad's text with the query beside it."""
        pairs = zip(queries, ads, strict=True)
        return [key for query, ad in pairs for key in self.keys(query, [ad])]

    def lookup(self, keys: Sequence[bytes]) -> tuple[Flags, Logits, Flags]:
        """What is known of n pairs.

        Returns:
            found: (n,).
            logits: (n, k) float32; rows that were not found mean nothing.
            truncated: (n,) some of the text had not fitted; likewise.
        """
        self._insert_fresh()
        found, payloads = self.store.lookup(keys)
        logits = np.ascontiguousarray(payloads[:, :-1]).view(np.float32)
        return found, logits, payloads[:, -1].view(np.bool_)

    def keep(self, key: bytes, logits: Logits, truncated: bool) -> None:
        """Keep one pair's (k,) logits, from the next look into the cache on."""
        if self.store.enabled:
            self._fresh.append((key, logits, truncated))
            if len(self._fresh) >= KEPT_AT_ONCE_PAIRS:
                self._insert_fresh()

    def insert(
        self, keys: Sequence[bytes], logits: Sequence[Logits], truncated: Sequence[bool]
    ) -> None:
        """Keep n >= 1 pairs' (k,) logits."""
        payloads = np.empty((len(keys), 4 * self._n_logits + 1), np.uint8)
        payloads[:, :-1] = np.array(logits, np.float32).view(np.uint8)
        payloads[:, -1] = truncated
        self.store.insert(keys, payloads)

    def _insert_fresh(self) -> None:
        if self._fresh:
            self.insert(*zip(*self._fresh, strict=True))
            self._fresh.clear()
