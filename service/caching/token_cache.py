"""Tokens by text: the same ad meets many queries and need not be cut into tokens each time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from service.caching.fixed_cache import Digester, FixedCache

Ids = NDArray[np.int32]


class TokenCache:
    """Token ids of texts of up to `max_tokens` tokens; longer ones are not kept."""

    def __init__(
        self,
        budget_bytes: int,
        max_tokens: int,
        tokenizer: str = "",
        before: TokenCache | None = None,
    ) -> None:
        """Allocate.

        Args:
            budget_bytes: Memory; 0 caches nothing.
            max_tokens: Longest text worth keeping, in tokens.
            tokenizer: Part of every key: another tokenizer's ids are never found.
            before: Another model's cache, of the same budget. Its memory is shared where entries
                are of the same size.
        """
        self._max_tokens = max_tokens
        self._digester = Digester("tokens", tokenizer)
        if before is not None and before._max_tokens == max_tokens:
            store = before.store
        else:
            store = FixedCache(budget_bytes, 4 * (max_tokens + 1))
        self.store: FixedCache = store

    def lookup(self, texts: Sequence[str]) -> list[Ids | None]:
        """The ids of each text, or None."""
        if not self.store.enabled:
            return [None] * len(texts)
        found, payloads = self.store.lookup(self._digester.keys(texts))
        rows = payloads.view(np.int32)  # length first, then the ids
        return [row[1 : 1 + row[0]] if hit else None for hit, row in zip(found, rows, strict=True)]

    def insert(self, texts: Sequence[str], ids: Sequence[Ids]) -> None:
        """Keep the ids of texts."""
        short = [i for i, one in enumerate(ids) if len(one) <= self._max_tokens]
        if not short or not self.store.enabled:
            return
        rows = np.zeros((len(short), self._max_tokens + 1), np.int32)
        for row, i in zip(rows, short, strict=True):
            n = len(ids[i])
            row[0] = n
            row[1 : 1 + n] = ids[i]
        self.store.insert(self._digester.keys([texts[i] for i in short]), rows.view(np.uint8))
