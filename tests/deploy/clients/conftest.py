"""Each test that asks for a caller runs once for each language."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.clients.driver import Caller, driving
from tests.deploy.clients.toolchains import BUILDERS, Built
from tests.end_to_end.running_service import RunningService, running

KEY = "a-key-of-the-callers-tests"


@pytest.fixture(scope="package", params=sorted(BUILDERS))
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The programs of one language; skips where its tools are not installed."""
    return BUILDERS[request.param](tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="package")
def caller(built: Built) -> Iterator[Caller]:
    """One language's client, in a process that waits for calls."""
    with driving(built) as started:
        yield started


@pytest.fixture(scope="package")
def service(tiny_bundle_int8: Path) -> Iterator[RunningService]:
    with running(tiny_bundle_int8) as started:
        yield started


@pytest.fixture(scope="package")
def service_with_keys(tiny_bundle_int8: Path) -> Iterator[RunningService]:
    with running(tiny_bundle_int8, ADREL_API_KEYS=KEY) as started:
        yield started
