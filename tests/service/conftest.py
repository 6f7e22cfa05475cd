from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.service.scorer_bench import Bench, a_bench


@pytest.fixture
def anyio_backend() -> str:
    """The service runs on asyncio; so do its asynchronous tests."""
    return "asyncio"


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """A scorer without a cache; modules that have a bench of another kind define their own."""
    async with a_bench() as made:
        yield made


@pytest.fixture
async def cached() -> AsyncIterator[Bench]:
    """A scorer with a cache."""
    async with a_bench(cache_bytes=2**20) as made:
        yield made
