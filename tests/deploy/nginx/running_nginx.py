"""nginx before servers that tests make."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.nginx import loopback


def program() -> str:
    """nginx, where it is installed."""
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if found is None:
        pytest.skip("nginx is not installed")
    return found


@contextmanager
def proxying(
    folder: Path, servers: Sequence[str], changes: Mapping[str, str] | None = None
) -> Iterator[str]:
    """nginx before the servers of these URLs, until the block ends; gives its own URL."""
    addresses = [server.removeprefix("http://") for server in servers]
    with loopback.proxying(program(), folder, addresses, changes or {}) as port:
        yield f"http://127.0.0.1:{port}"
