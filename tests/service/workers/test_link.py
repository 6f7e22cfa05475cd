from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from service.workers.link import AskFailed, Handler, Link, LinkLost

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def linked(
    one: Mapping[str, Handler], other: Mapping[str, Handler]
) -> AsyncIterator[tuple[Link, Link]]:
    """Both ends, read until the block ends."""
    ends = socket.socketpair()
    links = await Link.over(ends[0], one), await Link.over(ends[1], other)
    reading = [asyncio.create_task(link.run()) for link in links]
    try:
        yield links
    finally:
        for link in links:
            link.close()
        await asyncio.wait(reading, timeout=10)


async def double(number: Any) -> Any:  # noqa: ANN401  # any JSON
    return number * 2


async def test_either_side_may_ask_the_other() -> None:
    async with linked({"double": double}, {"double": double}) as (one, other):
        assert await one.ask("double", 3) == 6
        assert await other.ask("double", "ab") == "abab"


async def test_many_questions_at_once_get_their_own_answers() -> None:
    async with linked({}, {"double": double}) as (one, _):
        answers = await asyncio.gather(*(one.ask("double", number) for number in range(50)))
        assert answers == [2 * number for number in range(50)]


async def test_an_answer_may_be_large() -> None:
    async with linked({}, {"double": double}) as (one, _):
        assert await one.ask("double", "x" * 1_000_000) == "x" * 2_000_000


async def test_what_is_told_gets_there_without_an_answer() -> None:
    heard: asyncio.Queue[Any] = asyncio.Queue()
    async with linked({}, {"note": heard.put}) as (one, _):
        one.tell("note", {"n": 1})
        assert await asyncio.wait_for(heard.get(), 10) == {"n": 1}


async def test_a_question_that_fails_over_there_says_why() -> None:
    async def fail(_: Any) -> Any:  # noqa: ANN401
        raise ValueError("no such thing")

    async with linked({}, {"fail": fail}) as (one, _):
        with pytest.raises(AskFailed, match="no such thing"):
            await one.ask("fail")


async def test_an_answer_that_comes_too_late_disturbs_no_later_one() -> None:
    release = asyncio.Event()

    async def slow(_: Any) -> str:  # noqa: ANN401
        await release.wait()
        return "late"

    async with linked({}, {"slow": slow, "double": double}) as (one, _):
        with pytest.raises(TimeoutError):
            await one.ask("slow", timeout_s=0.01)
        release.set()
        assert await one.ask("double", 2) == 4


async def test_the_end_of_the_other_side_fails_what_was_asked_and_all_that_is_asked_later() -> None:
    asked = asyncio.Event()

    async def never(_: Any) -> None:  # noqa: ANN401
        asked.set()
        await asyncio.Event().wait()

    async with linked({}, {"never": never}) as (one, other):
        question = asyncio.create_task(one.ask("never"))
        await asked.wait()
        other.close()
        with pytest.raises(LinkLost):
            await asyncio.wait_for(question, 10)
        one.tell("anything")
        with pytest.raises(LinkLost):
            await one.ask("anything")
