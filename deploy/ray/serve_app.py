"""adrel on Ray Serve: the same application with the same answers, in replicas that come and go.

    serve run deploy/ray/serve_config.yaml

A replica is what `python -m service` is, less the server: one model, one event loop, as many
inference threads as the cluster gives it cores.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import ray
from ray import serve
from starlette.types import ASGIApp

from service.api.doors import public_door
from service.api.state import ServiceState
from service.app import create_app, load_model
from service.log import configure_logging
from service.serve import keys_of
from service.settings import Settings, load_settings

ROOT = Path(__file__).parents[2]
CORES = 2  # of a replica, where the config file does not say


def replica_settings(options: Mapping[str, str], cores: float) -> Settings:
    """Settings of a replica: those given, then its environment, as the service has it.

    Args:
        options: By name. A relative bundle is one of the repository; `inference_threads` needs no
            setting.
        cores: That the cluster has given the replica. The machine's own count would be wrong: Ray
            neither pins processes nor sets quotas.

    Raises:
        StartupError: They cannot be used.
    """
    given = {"inference_threads": str(max(1, int(cores))), **options}
    given["bundle"] = str(ROOT / given.get("bundle", "bundles/default"))
    argv = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    return load_settings(argv, os.environ)


class AdrelReplica:
    """One replica. Serve sends it requests once its application has started."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Load the model; a start that cannot work fails with the reason.

        Args:
            options: Of `replica_settings`.

        Raises:
            StartupError: The settings or the bundle cannot be used.
        """
        cores = ray.get_runtime_context().get_assigned_resources().get("CPU", 1)
        settings = replica_settings(options, cores)
        configure_logging(settings.log_level)
        keys = keys_of(settings)
        app = create_app(settings, load_model(settings), keys)
        self._state: ServiceState = app.state.service
        self._door = public_door(app, keys.callers)

    def __serve_build_asgi_app__(self) -> ASGIApp:
        """What Serve runs, with its lifespan."""
        return self._door

    def check_health(self) -> None:
        """Called by Serve every few seconds; it replaces a replica where this raises.

        Raises:
            NotReady: The replica cannot score.
        """
        self._state.ready_parts()

    async def __del__(self) -> None:
        """After the last request: the batches' threads end."""
        await self._state.drain()


def build(options: Mapping[str, str]) -> serve.Application:
    """The application, for `import_path` of a config file, which decides how many replicas it has.

    Args:
        options: `args` of the config file: settings of the service by name.
    """
    deployment = serve.deployment(name="adrel", ray_actor_options={"num_cpus": CORES})
    return deployment(serve.ingress()(AdrelReplica)).bind(dict(options))
