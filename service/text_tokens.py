"""Token ids of a request's texts: from the cache, at once, or from a thread where they are long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from service.caching.token_cache import Ids, TokenCache

# Longer requests are tokenized in a thread. Tokenizing takes about 50 us for a pair of about 200
# characters, so this holds the event loop up for about 2 ms.
INLINE_MAX_CHARS = 8_000


class TextTokens:
    """Tokenizes what the cache does not know."""

    def __init__(self, tokenize: Callable[[Sequence[str]], list[Ids]], cache: TokenCache) -> None:
        self._tokenize = tokenize
        self._cache = cache
        # One thread: many long requests must not take the cores from the inference.
        self._long_texts = ThreadPoolExecutor(1, thread_name_prefix="long-texts")

    async def of(self, texts: Sequence[str], give_up: asyncio.Future[Any]) -> list[Ids] | None:
        """The ids of each text by itself.

        Args:
            texts: In any number and of any length.
            give_up: Once this is done nobody needs the ids.

        Returns:
            None where `give_up` was done first.
        """
        known = self._cache.lookup(texts)
        unknown = [text for text, ids in zip(texts, known, strict=True) if ids is None]
        if not unknown:
            made: list[Ids] = []
        elif sum(map(len, unknown)) <= INLINE_MAX_CHARS:
            made = self._tokenize(unknown)
        else:
            loop = asyncio.get_running_loop()
            tokenizing = loop.run_in_executor(self._long_texts, self._tokenize, unknown)
            try:
                await asyncio.wait({tokenizing, give_up}, return_when=asyncio.FIRST_COMPLETED)
                if not tokenizing.done():
                    return None
                made = tokenizing.result()
            finally:
                tokenizing.cancel()  # what has not begun never will
        if unknown:
            # Once the request is on its way: its pairs need not wait for this.
            asyncio.get_running_loop().call_soon(self._cache.insert, unknown, made)
        fresh = iter(made)
        return [next(fresh) if ids is None else ids for ids in known]
