from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from service.caching.token_cache import TokenCache
from service.text_tokens import INLINE_MAX_CHARS, TextTokens

pytestmark = pytest.mark.anyio

LONG = "x" * (INLINE_MAX_CHARS + 1)


class Lengths:
    """A tokenizer that makes one token of a text: its length."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.threads: set[str] = set()
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        self.asked.append(list(texts))
        self.threads.add(threading.current_thread().name)
        assert self.gate.wait(timeout=30)
        return [np.array([len(text)], np.int32) for text in texts]


def never() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


async def test_texts_that_were_seen_before_are_not_tokenized_again() -> None:
    lengths = Lengths()
    tokens = TextTokens(lengths, TokenCache(2**20, 8))
    await tokens.of(["a", "bb"], never())
    await asyncio.sleep(0)  # what was made is kept once the request is on its way
    ids = await tokens.of(["bb", "ccc", "a"], never())
    assert ids is not None
    assert [one.tolist() for one in ids] == [[2], [3], [1]]
    assert lengths.asked == [["a", "bb"], ["ccc"]]


async def test_texts_that_will_not_come_again_are_not_kept() -> None:
    lengths = Lengths()
    tokens = TextTokens(lengths, TokenCache(2**20, 8))
    for _ in range(2):
        await tokens.of(["a"], never(), keep=False)
        await asyncio.sleep(0)
    assert lengths.asked == [["a"], ["a"]]


async def test_other_work_on_texts_is_done_in_the_one_thread_of_the_long_ones() -> None:
    tokens = TextTokens(Lengths(), TokenCache(0, 8))
    threads = [await tokens.beside(threading.get_ident) for _ in range(2)]
    assert len({*threads}) == 1
    assert threads[0] != threading.get_ident()


async def test_long_texts_are_tokenized_beside_the_event_loop_and_short_ones_on_it() -> None:
    lengths = Lengths()
    tokens = TextTokens(lengths, TokenCache(0, 8))
    await tokens.of(["short"], never())
    assert lengths.threads == {threading.current_thread().name}
    ids = await tokens.of([LONG, "b"], never())
    assert ids is not None
    assert [one.tolist() for one in ids] == [[len(LONG)], [1]]
    assert len(lengths.threads) == 2


async def test_long_texts_that_nobody_waits_for_any_more_are_given_up() -> None:
    lengths = Lengths()
    lengths.gate.clear()
    tokens = TextTokens(lengths, TokenCache(0, 8))
    gone = never()
    task = asyncio.ensure_future(tokens.of([LONG], gone))
    await asyncio.sleep(0)
    gone.set_result(None)
    assert await task is None
    lengths.gate.set()


async def test_long_requests_take_turns_in_the_thread() -> None:
    lengths = Lengths()
    lengths.gate.clear()
    tokens = TextTokens(lengths, TokenCache(0, 8))
    large = asyncio.ensure_future(tokens.of([LONG] * 5, never()))
    await asyncio.sleep(0)
    small = asyncio.ensure_future(tokens.of(["small", LONG], never()))
    await asyncio.sleep(0)
    lengths.gate.set()
    await asyncio.gather(large, small)
    assert lengths.asked.index(["small"]) < 3
