from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.export_options import without_figures


@pytest.fixture
def drawn() -> None:
    """For tests that look at the figures of what they export."""


@pytest.fixture(autouse=True)
def undrawn(request: pytest.FixtureRequest) -> Iterator[None]:
    """All other tests' exports come without."""
    if "drawn" in request.fixturenames:
        yield
        return
    with without_figures():
        yield
