"""The pods of the service: their numbers are the service's, and they may do nothing else."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest

from service.api import probes
from service.serve import LAST_ANSWERS_S, LAST_BATCHES_S, LAST_EXIT_S
from service.settings import Settings
from tests.deploy.kubernetes.manifests import (
    NAMES,
    Resource,
    container,
    environment,
    of_kind,
    pod,
    ports,
)
from tests.deploy.repository import DOCKERFILE
from tests.deploy.test_image import environment as image_environment

IMAGE = DOCKERFILE.read_text(encoding="utf-8")
MIB = 2**20
# deploy/OPERATING.md: resident memory while one bundle replaces another.
MOST_RESIDENT_BYTES = 365_000_000


def deployment(name: str) -> Resource:
    return of_kind(name, "Deployment")["adrel"]


def settings(name: str) -> Settings:
    """As the pods would read them: the image's, then the Deployment's."""
    given = image_environment("gpu" if name == "overlays/gpu" else "cpu")
    given |= environment(deployment(name))
    values: dict[str, Any] = {
        key.removeprefix("ADREL_").lower(): value
        for key, value in given.items()
        if key.startswith("ADREL_")
    }
    return Settings(**values)  # refuses names that are none, and values that cannot be


def number_of_bytes(quantity: str) -> int:
    units = {"Mi": 2**20, "Gi": 2**30}
    return int(quantity[:-2]) * units[quantity[-2:]]


@pytest.mark.parametrize("name", NAMES)
def test_every_variable_is_a_setting_that_the_service_takes(name: str) -> None:
    read = settings(name)
    assert read.host == read.admin_host == "0.0.0.0"  # noqa: S104  # in a pod, policies decide
    assert read.provider == ("cuda" if name == "overlays/gpu" else "cpu")


@pytest.mark.parametrize("name", NAMES)
def test_the_ports_are_the_service_s(name: str) -> None:
    read = settings(name)
    assert ports(deployment(name)) == {"http": read.port, "admin": read.admin_port}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("kind", "path"),
    [("startupProbe", "/readyz"), ("readinessProbe", "/readyz"), ("livenessProbe", "/livez")],
)
def test_probes_ask_paths_that_exist_on_the_admin_port(name: str, kind: str, path: str) -> None:
    asked = container(deployment(name))[kind]["httpGet"]
    assert asked == {"path": path, "port": "admin"}
    assert path in {getattr(route, "path", "") for route in probes.router.routes}


@pytest.mark.parametrize("name", NAMES)
def test_what_was_accepted_is_answered_before_the_pod_is_killed(name: str) -> None:
    read = settings(name)
    least_s = read.shutdown_delay_s + read.drain_timeout_s
    least_s += LAST_ANSWERS_S + LAST_BATCHES_S + LAST_EXIT_S
    assert pod(deployment(name))["terminationGracePeriodSeconds"] > least_s


@pytest.mark.parametrize("name", NAMES)
def test_the_service_itself_waits_for_traffic_to_go_and_nothing_waits_before_it(name: str) -> None:
    assert settings(name).shutdown_delay_s >= 5
    assert "lifecycle" not in container(deployment(name))


@pytest.mark.parametrize("name", NAMES)
def test_cores_are_whole_and_the_pod_can_be_pinned(name: str) -> None:
    specification = pod(deployment(name))
    for one in [*specification["containers"], *specification.get("initContainers", [])]:
        requests, limits = one["resources"]["requests"], one["resources"]["limits"]
        assert int(limits["cpu"]) >= 1
        assert requests["cpu"] == limits["cpu"]
        assert requests["memory"] == limits["memory"]  # else its class is not Guaranteed


@pytest.mark.parametrize("name", NAMES)
def test_memory_is_enough_for_two_models_and_a_body_on_every_connection(name: str) -> None:
    read = settings(name)
    limit = number_of_bytes(container(deployment(name))["resources"]["limits"]["memory"])
    assert limit > MOST_RESIDENT_BYTES + read.max_connections * read.max_body_bytes


@pytest.mark.parametrize("name", NAMES)
def test_keys_come_from_a_secret_and_change_without_a_restart(name: str) -> None:
    specification = pod(deployment(name))
    keys = settings(name).api_keys_file
    assert keys is not None
    [mount] = [
        one
        for one in container(deployment(name))["volumeMounts"]
        if PurePosixPath(one["mountPath"]) == PurePosixPath(keys).parent
    ]
    assert "subPath" not in mount  # such a mount never changes
    [volume] = [one for one in specification["volumes"] if one["name"] == mount["name"]]
    assert volume["secret"]["defaultMode"] == 0o440
    assert specification["securityContext"]["fsGroup"] == 10001
    assert "ADREL_API_KEYS" not in environment(deployment(name))


@pytest.mark.parametrize("name", NAMES)
def test_the_bundle_lies_in_the_image_or_where_a_volume_is_mounted(name: str) -> None:
    bundle = PurePosixPath(settings(name).bundle)
    mounts = [one["mountPath"] for one in container(deployment(name))["volumeMounts"]]
    mounted = [mount for mount in mounts if bundle.is_relative_to(mount)]
    assert bool(mounted) is name.startswith("base with bundle")
    if not mounted:
        assert f"/build/bundles/default {bundle}\n" in IMAGE


@pytest.mark.parametrize("name", NAMES)
def test_the_user_is_the_image_s(name: str) -> None:
    context: dict[str, Any] = pod(deployment(name))["securityContext"]
    assert f"USER {context['runAsUser']}:{context['runAsGroup']}\n" in IMAGE


def test_pods_on_a_gpu_ask_for_one() -> None:
    assert container(deployment("overlays/gpu"))["resources"]["limits"]["nvidia.com/gpu"] == 1
