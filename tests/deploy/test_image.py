from __future__ import annotations

import json
import re
import shlex
import tomllib

import pytest

from service.settings import Settings
from tests.deploy.repository import COMPOSE, DOCKERFILE, ROOT, read_yaml

TRAINING_STACK = re.compile(r"torch|transformers|optimum|\[export\]|model_export", re.IGNORECASE)


def instructions() -> list[str]:
    """Without comments, one instruction each."""
    lines = DOCKERFILE.read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def stages() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in instructions():
        start = re.fullmatch(r"FROM (\S+) AS (\w+)", line)
        if start:
            found[start[2]] = [line]
        elif found:
            next(reversed(found.values())).append(line)
    return found


RUNTIME = stages()["runtime"]
TARGETS = {name: [*RUNTIME, *stages()[name]] for name in ("cpu", "gpu")}
each_target = pytest.mark.parametrize("target", TARGETS)


def values(stage: list[str], keyword: str) -> list[str]:
    return [line.removeprefix(keyword + " ") for line in stage if line.startswith(keyword + " ")]


def environment(target: str) -> dict[str, str]:
    words = [word for line in values(TARGETS[target], "ENV") for word in shlex.split(line)]
    return dict(word.split("=", 1) for word in words)


def test_the_base_image_is_an_argument_with_an_official_default() -> None:
    assert instructions()[0] == "ARG BASE_IMAGE=python:3.11-slim-bookworm"
    bases = {stage[0].split()[1] for stage in stages().values()} - stages().keys()
    assert bases == {"${BASE_IMAGE}"}


def test_the_target_for_the_cpu_is_built_unless_another_one_is_asked_for() -> None:
    assert next(reversed(stages())) == "cpu"


@pytest.mark.parametrize("service", ["adrel", "loadtest"])
def test_compose_builds_on_the_same_base_image(service: str) -> None:
    base = read_yaml(COMPOSE)["services"][service]["build"]["args"]["BASE_IMAGE"]
    assert f"ARG BASE_IMAGE={base.removeprefix('${BASE_IMAGE:-').removesuffix('}')}" in (
        instructions()
    )


@each_target
def test_an_image_takes_nothing_of_the_training_stack(target: str) -> None:
    for stage in (TARGETS[target], stages()[f"packages_{target}"], stages()["code"]):
        assert not [line for line in stage if TRAINING_STACK.search(line)]


@each_target
def test_an_image_copies_only_the_bundle_from_the_stages_that_have_the_training_stack(
    target: str,
) -> None:
    sources = {
        line.split()[0].removeprefix("--from="): line
        for line in values(TARGETS[target], "COPY")
        if line.startswith("--from")
    }
    assert sources.keys() == {f"packages_{target}", f"bundle_{target}", "code"}
    assert sources[f"bundle_{target}"].endswith(
        " /build/bundles/default /srv/adrel/bundles/default"
    )


@each_target
def test_pip_is_left_behind(target: str) -> None:
    assert not [line for line in TARGETS[target] if "pip" in line]
    [install] = [line for line in stages()[f"packages_{target}"] if "pip install" in line]
    assert "pip uninstall --quiet --yes adrel setuptools pip" in install


@pytest.mark.parametrize("stage", ["packages_cpu", "packages_gpu", "export", "loadtest"])
def test_versions_are_the_locked_ones(stage: str) -> None:
    [install] = [line for line in stages()[stage] if "pip install" in line]
    assert "--constraint requirements.lock" in install
    assert "--no-cache-dir" in install


def test_each_target_has_the_runtime_and_the_weights_of_its_kind() -> None:
    installs = {target: " ".join(stages()[f"packages_{target}"]) for target in TARGETS}
    assert "'.[serve]'" in installs["cpu"]
    assert "'.[serve-gpu]'" in installs["gpu"]
    assert "--precision int8" in " ".join(stages()["bundle_cpu"])
    assert "--precision fp16" in " ".join(stages()["bundle_gpu"])
    assert "ADREL_PROVIDER" not in environment("cpu")
    assert environment("gpu")["ADREL_PROVIDER"] == "cuda"


@pytest.mark.parametrize("stage", ["runtime", "loadtest"])
def test_the_container_does_not_run_as_root(stage: str) -> None:
    [user] = values(stages()[stage], "USER")
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user)  # numbers: an orchestrator can check them


def test_commands_are_run_without_a_shell() -> None:
    [entrypoint] = values(RUNTIME, "ENTRYPOINT")
    assert json.loads(entrypoint) == ["/srv/venv/bin/python", "-m", "service"]
    [healthcheck] = values(RUNTIME, "HEALTHCHECK")
    assert json.loads(healthcheck.partition("CMD ")[2])[-1] == "/srv/adrel/healthcheck.py"


def test_compose_checks_health_as_the_image_does() -> None:
    [healthcheck] = values(RUNTIME, "HEALTHCHECK")
    command = json.loads(healthcheck.partition("CMD ")[2])
    assert read_yaml(COMPOSE)["services"]["adrel"]["healthcheck"]["test"] == ["CMD", *command]


def test_compose_builds_the_load_test_from_a_stage_that_writes_into_its_volume() -> None:
    service = read_yaml(COMPOSE)["services"]["loadtest"]
    stage = stages()[service["build"]["target"]]
    [entrypoint] = values(stage, "ENTRYPOINT")
    [volume] = service["volumes"]
    command = [*json.loads(entrypoint), *service["command"]]
    assert command[1:5] == ["-m", "deploy.loadtest", "--out", volume.partition(":")[2]]
    assert "--host-is-mine" in command


@each_target
def test_every_setting_of_an_image_exists(target: str) -> None:
    names = {name for name in environment(target) if name.startswith("ADREL_")}
    assert names <= {f"ADREL_{name.upper()}" for name in Settings.model_fields}


def test_the_container_listens_where_it_can_be_reached() -> None:
    settings = environment("cpu")
    assert settings["ADREL_HOST"] == "0.0.0.0"  # noqa: S104  # that is the point
    assert values(RUNTIME, "EXPOSE") == [settings["ADREL_PORT"]]


def test_onnx_runtime_reports_to_nobody() -> None:
    assert environment("cpu")["ORT_DISABLE_TELEMETRY"] == "1"
    assert "ENV ORT_DISABLE_TELEMETRY=1" in stages()["export"]


def test_the_labelled_version_is_the_project_s() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"ARG VERSION={project['version']}" in RUNTIME


def test_the_build_sees_what_it_copies_and_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    allowed = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    copied = {
        source.rstrip("/")
        for stage in stages().values()
        for line in values(stage, "COPY")
        if not line.startswith("--from")
        for source in line.split()[:-1]
    }
    assert allowed == copied
