from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The service runs on asyncio; so do its asynchronous tests."""
    return "asyncio"
