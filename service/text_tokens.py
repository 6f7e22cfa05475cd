"""Token ids of a request's texts: from the cache, at once, or from a thread where they are long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from service.caching.token_cache import Ids, TokenCache

Made = TypeVar("Made")

# Longer requests are tokenized in a thread. Words that were never seen take the library 0.4 us a
# character, so this holds the event loop up for about 3 ms at the worst.
INLINE_MAX_CHARS = 8_000


class TextTokens:
    """Tokenizes what the cache does not know."""

    def __init__(self, tokenize: Callable[[Sequence[str]], list[Ids]], cache: TokenCache) -> None:
        self._tokenize = tokenize
        self._cache = cache
        # One thread: many long requests must not take the cores from the inference.
        self._long_texts = ThreadPoolExecutor(1, thread_name_prefix="long-texts")

    async def of(
        self, texts: Sequence[str], give_up: asyncio.Future[Any], *, keep: bool = True
    ) -> list[Ids] | None:
        """The ids of each text by itself.

        Args:
            texts: In any number and of any length.
            give_up: Once this is done nobody needs the ids.
            keep: The texts may come again, so the cache takes what it did not know.

        Returns:
            None where `give_up` was done first.
        """
        known = self._cache.lookup(texts)
        unknown = [text for text, ids in zip(texts, known, strict=True) if ids is None]
        made: list[Ids] = []
        if sum(map(len, unknown)) <= INLINE_MAX_CHARS:
            if unknown:
                made = self._tokenize(unknown)
                self._keep_soon(unknown, made, keep)
        else:
            for part in _parts(unknown):
                part_ids = await self._in_thread(part, give_up)
                if part_ids is None:
                    return None
                made += part_ids
                self._keep_soon(part, part_ids, keep)
        fresh = iter(made)
        return [next(fresh) if ids is None else ids for ids in known]

    def _keep_soon(self, texts: Sequence[str], ids: Sequence[Ids], keep: bool) -> None:
        """Remember the ids once the request is on its way, or the thread has its next part."""
        if keep:
            asyncio.get_running_loop().call_soon(self._cache.insert, texts, ids)

    async def beside(self, work: Callable[[], Made]) -> Made:
        """Do other work on texts in the thread of the long ones; it waits for its turn there."""
        return await asyncio.get_running_loop().run_in_executor(self._long_texts, work)

    async def _in_thread(self, texts: list[str], give_up: asyncio.Future[Any]) -> list[Ids] | None:
        loop = asyncio.get_running_loop()
        tokenizing = loop.run_in_executor(self._long_texts, self._tokenize, texts)
        try:
            await asyncio.wait({tokenizing, give_up}, return_when=asyncio.FIRST_COMPLETED)
            return tokenizing.result() if tokenizing.done() else None
        finally:
            tokenizing.cancel()  # what has not begun never will


def _parts(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in parts of bounded length, so that requests take turns in the thread."""
    part: list[str] = []
    n_chars = 0
    for text in texts:
        if part and n_chars + len(text) > INLINE_MAX_CHARS:
            yield part
            part, n_chars = [], 0
        part.append(text)
        n_chars += len(text)
    yield part
