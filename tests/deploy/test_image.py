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


FINAL = list(stages().values())[-1]


def values(stage: list[str], keyword: str) -> list[str]:
    return [line.removeprefix(keyword + " ") for line in stage if line.startswith(keyword + " ")]


def final_environment() -> dict[str, str]:
    words = [word for line in values(FINAL, "ENV") for word in shlex.split(line)]
    return dict(word.split("=", 1) for word in words)


def test_the_base_image_is_an_argument_with_an_official_default() -> None:
    assert instructions()[0] == "ARG BASE_IMAGE=python:3.11-slim-bookworm"
    assert stages()["final"][0] == "FROM ${BASE_IMAGE} AS final"


@pytest.mark.parametrize("service", ["adrel", "loadtest"])
def test_compose_builds_on_the_same_base_image(service: str) -> None:
    base = read_yaml(COMPOSE)["services"][service]["build"]["args"]["BASE_IMAGE"]
    assert f"ARG BASE_IMAGE={base.removeprefix('${BASE_IMAGE:-').removesuffix('}')}" in (
        instructions()
    )


def test_the_final_stage_takes_nothing_of_the_training_stack() -> None:
    assert not [line for line in FINAL if TRAINING_STACK.search(line)]
    assert not [line for line in stages()["serve"] if TRAINING_STACK.search(line)]


def test_the_final_stage_copies_only_the_bundle_from_the_stage_that_has_the_training_stack() -> (
    None
):
    copied = [line for line in values(FINAL, "COPY") if "--from=bundle" in line]
    assert copied == ["--from=bundle /build/bundles/default /srv/adrel/bundles/default"]


def test_the_final_stage_runs_no_pip() -> None:
    assert not [line for line in FINAL if "pip" in line]


@pytest.mark.parametrize("stage", ["serve", "bundle", "loadtest"])
def test_versions_are_the_locked_ones(stage: str) -> None:
    [install] = [line for line in stages()[stage] if "pip install" in line]
    assert "--constraint requirements.lock" in install
    assert "--no-cache-dir" in install


@pytest.mark.parametrize("stage", ["final", "loadtest"])
def test_the_container_does_not_run_as_root(stage: str) -> None:
    [user] = values(stages()[stage], "USER")
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user)  # numbers: an orchestrator can check them


def test_commands_are_run_without_a_shell() -> None:
    [entrypoint] = values(FINAL, "ENTRYPOINT")
    assert json.loads(entrypoint) == ["/srv/venv/bin/python", "-m", "service"]
    [healthcheck] = values(FINAL, "HEALTHCHECK")
    assert json.loads(healthcheck.partition("CMD ")[2])[-1] == "/srv/adrel/healthcheck.py"


def test_compose_checks_health_as_the_image_does() -> None:
    [healthcheck] = values(FINAL, "HEALTHCHECK")
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


def test_every_setting_of_the_image_exists() -> None:
    names = {name for name in final_environment() if name.startswith("ADREL_")}
    assert names <= {f"ADREL_{name.upper()}" for name in Settings.model_fields}


def test_the_container_listens_where_it_can_be_reached() -> None:
    environment = final_environment()
    assert environment["ADREL_HOST"] == "0.0.0.0"  # noqa: S104  # that is the point
    assert values(FINAL, "EXPOSE") == [environment["ADREL_PORT"]]


def test_onnx_runtime_reports_to_nobody() -> None:
    assert final_environment()["ORT_DISABLE_TELEMETRY"] == "1"
    assert "ENV ORT_DISABLE_TELEMETRY=1" in stages()["bundle"]


def test_the_labelled_version_is_the_project_s() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"ARG VERSION={project['version']}" in FINAL


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
