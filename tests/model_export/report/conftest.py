from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def undrawn() -> None:
    """Here figures are drawn: they are what is tested."""
