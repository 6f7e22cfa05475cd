"""One cluster of two nodes for all tests of Ray: real processes, on the loopback."""

from __future__ import annotations

import importlib.util
import os
import secrets
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from tests.end_to_end.running_service import ROOT

TRIES = 3


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A head of two cores, and this process connected to it. Tests add nodes, and kill them."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("needs the extra 'ray'")
    token = tmp_path_factory.mktemp("ray") / "token"
    token.write_text(secrets.token_hex(16), encoding="ascii")
    with pytest.MonkeyPatch.context() as patched:  # all of it before ray is imported
        for name, value in {
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # keeps to the loopback
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(token),
            # Where others fill the cores, even a node that is well is slow to say so.
            "RAY_health_check_initial_delay_ms": "60000",
            "RAY_health_check_timeout_ms": "30000",
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        }.items():
            patched.setenv(name, value)
        with warnings.catch_warnings():  # of its own use of other libraries
            warnings.simplefilter("ignore")
            import ray
            import ray.serve.schema
            from ray.cluster_utils import Cluster

        started = _head(Cluster)
        try:
            ray.init(address=started.address, log_to_driver=False, logging_level="error")
            yield started
        finally:
            ray.shutdown()
            started.shutdown()


def _head(cluster: Any) -> Any:  # noqa: ANN401  # Ray's
    """Ray gives a node 30 s to start, which is not always enough where others fill the cores."""
    facts = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 10**8}
    for _ in range(TRIES - 1):
        try:
            return cluster(initialize_head=True, head_node_args=facts)
        except Exception as error:  # Ray raises no narrower one
            if "timed out during startup" not in str(error):
                raise
    return cluster(initialize_head=True, head_node_args=facts)
