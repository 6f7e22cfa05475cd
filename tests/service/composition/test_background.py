from __future__ import annotations

import asyncio

import pytest

from service.composition.background import in_background, up_to_date

pytestmark = pytest.mark.anyio


async def test_the_work_goes_on_while_the_block_runs_and_has_ended_after_it() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with in_background(work()):
        await begun.wait()
        assert not ended.is_set()
    assert ended.is_set()


async def test_the_work_ends_also_where_the_block_fails() -> None:
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def fail_beside_it() -> None:
        async with in_background(work()):
            await asyncio.sleep(0)
            raise KeyError

    with pytest.raises(KeyError):
        await fail_beside_it()
    assert ended.is_set()


async def test_without_keys_there_is_nothing_to_follow() -> None:
    before = asyncio.all_tasks()
    async with up_to_date(None):
        assert asyncio.all_tasks() == before
