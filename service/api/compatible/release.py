"""Which release of the product serves."""

from __future__ import annotations

import functools
from importlib.metadata import PackageNotFoundError, version


@functools.cache
def release() -> str:
    """The version of the installed package; "unknown" where it runs without being installed."""
    try:
        return version("adrel")
    except PackageNotFoundError:
        return "unknown"
