"""What `kubectl apply -k` would send, as kubectl itself renders it."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.repository import DEPLOY

Resource = dict[str, Any]

KUBERNETES = DEPLOY / "kubernetes"
COMPONENTS = sorted(path.name for path in (KUBERNETES / "components").iterdir())
WHOLE = ("base", "overlays/cpu", "overlays/gpu")
NAMES = (*WHOLE, *(f"base with {component}" for component in COMPONENTS))
OLDEST_KUSTOMIZE = (5, 0)  # components, and `labels` as we write them


@functools.cache
def kubectl() -> str:
    """Kubectl, where it is installed and new enough."""
    found = shutil.which("kubectl")
    if found is None:
        pytest.skip("kubectl is not installed")
    told = _run(found, "version", "--client", "--output", "json")
    version = json.loads(told).get("kustomizeVersion", "v0.0").removeprefix("v")
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_KUSTOMIZE:
        pytest.skip(f"kubectl's kustomize is {version}, too old for components")
    return found


@functools.cache
def rendered(name: str) -> tuple[Resource, ...]:
    """All resources of the base, an overlay, or the base with one component."""
    base, _, component = name.partition(" with ")
    if not component:
        return _resources(_run(kubectl(), "kustomize", str(KUBERNETES / base)))
    with tempfile.TemporaryDirectory() as folder:  # kustomize takes no component by itself
        here = os.path.relpath(KUBERNETES, Path(folder).resolve())  # nor an absolute path
        whole = {
            "namespace": "adrel",  # as in the overlays: the base's does not reach components
            "resources": [f"{here}/base"],
            "components": [f"{here}/components/{component}"],
        }
        Path(folder, "kustomization.yaml").write_text(yaml.safe_dump(whole), encoding="utf-8")
        return _resources(_run(kubectl(), "kustomize", folder))


def of_kind(name: str, kind: str) -> dict[str, Resource]:
    """Those of one kind, by name."""
    found = [one for one in rendered(name) if one["kind"] == kind]
    return {one["metadata"]["name"]: one for one in found}


def pod(deployment: Resource) -> Resource:
    """The specification of its pods."""
    specification: Resource = deployment["spec"]["template"]["spec"]
    return specification


def container(deployment: Resource) -> Resource:
    """Its one container that stays."""
    [only] = pod(deployment)["containers"]
    return dict(only)


def ports(deployment: Resource) -> dict[str, int]:
    """Of its container, by name."""
    return {port["name"]: port["containerPort"] for port in container(deployment)["ports"]}


def environment(deployment: Resource) -> dict[str, str]:
    """Of its container; what a Secret holds is `secret`."""
    return {one["name"]: one.get("value", "secret") for one in container(deployment).get("env", [])}


def _resources(text: str) -> tuple[Resource, ...]:
    return tuple(yaml.safe_load_all(text))


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "deprecated" not in done.stderr.lower(), done.stderr
    return done.stdout
