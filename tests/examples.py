"""How many examples Hypothesis makes where each one costs a request to a running service."""

from __future__ import annotations

from hypothesis import settings

USUAL = 100  # of other tests, as long as no other profile is loaded


def examples(number: int) -> int:
    """So many in a usual run; in one with another profile, more or fewer in proportion."""
    return max(1, number * settings().max_examples // USUAL)
