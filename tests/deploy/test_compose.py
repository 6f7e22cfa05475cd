from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any

import pytest

from service.settings import Settings
from tests.deploy.repository import COMPOSE, DEPLOY, ROOT, read_yaml

SERVICES: dict[str, Any] = read_yaml(COMPOSE)["services"]
USUAL = [name for name, service in SERVICES.items() if "profiles" not in service]
OURS = {name for name, service in SERVICES.items() if "build" in service}


def with_defaults(text: str) -> str:
    """What compose makes of ${NAME:-default} when NAME is not set."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)


def test_the_service_and_its_monitoring_start_where_no_profile_is_asked_for() -> None:
    assert USUAL == ["adrel", "prometheus", "grafana"]


def test_every_variable_stands_in_the_operators_page_with_its_default() -> None:
    told = re.findall(r"\$\{(\w+):-([^}]*)\}", COMPOSE.read_text(encoding="utf-8"))
    page = (DEPLOY / "OPERATING.md").read_text(encoding="utf-8")
    section = page.partition("\n## With docker compose\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \|", section, re.MULTILINE)
    assert sorted(rows) == sorted({(name, default or "(empty)") for name, default in told})


def test_the_load_test_ends_and_publishes_nothing() -> None:
    load_test = SERVICES["loadtest"]
    assert load_test["profiles"] == ["loadtest"]
    assert load_test["restart"] == "no"
    assert "ports" not in load_test
    assert load_test["depends_on"] == {"adrel": {"condition": "service_healthy"}}
    assert load_test["command"][:2] == ["--url", "http://adrel:8000"]


@pytest.mark.parametrize("name", USUAL)
def test_every_port_is_published_on_loopback_only(name: str) -> None:
    ports = [with_defaults(port) for port in SERVICES[name]["ports"]]
    assert ports
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in ports)


def test_redis_is_there_only_where_asked_for_and_only_for_the_service() -> None:
    redis = SERVICES["redis"]
    assert redis["profiles"] == ["cache"]
    assert "ports" not in redis
    assert redis["read_only"] is True
    assert SERVICES["adrel"]["environment"]["ADREL_REDIS_URL"] == "${ADREL_REDIS_URL:-}"


def redis_options() -> dict[str, str]:
    options = SERVICES["redis"]["command"][1:]
    return dict(zip(options[::2], options[1::2], strict=True))


def test_redis_answers_the_service_which_is_not_on_its_loopback() -> None:
    assert redis_options()["--protected-mode"] == "no"


def test_redis_forgets_what_is_used_least_and_keeps_nothing_on_disk() -> None:
    given = redis_options()
    assert given["--maxmemory-policy"] == "allkeys-lru"
    assert (given["--save"], given["--appendonly"]) == ("", "no")
    assert int(given["--maxmemory"].removesuffix("mb")) < int(
        SERVICES["redis"]["mem_limit"].removesuffix("m")
    )


@pytest.mark.parametrize("name", SERVICES)
def test_no_container_has_or_can_gain_privileges(name: str) -> None:
    assert SERVICES[name]["security_opt"] == ["no-new-privileges:true"]
    assert SERVICES[name]["cap_drop"] == ["ALL"]
    assert not {"privileged", "cap_add", "network_mode", "pid", "devices"} & SERVICES[name].keys()


def test_the_service_writes_nowhere() -> None:
    service = SERVICES["adrel"]
    assert service["read_only"] is True
    assert not {"volumes", "tmpfs"} & service.keys()


def test_the_service_is_limited_in_cores_and_memory() -> None:
    service = SERVICES["adrel"]
    assert float(with_defaults(str(service["cpus"]))) >= 1
    assert service["mem_limit"]


def test_the_service_has_time_to_answer_what_it_accepted() -> None:
    grace_s = float(SERVICES["adrel"]["stop_grace_period"].removesuffix("s"))
    assert grace_s > Settings.model_fields["drain_timeout_s"].default


def test_every_setting_given_to_the_service_exists() -> None:
    known = {f"ADREL_{name.upper()}" for name in Settings.model_fields}
    assert SERVICES["adrel"]["environment"].keys() <= known


@pytest.mark.parametrize("name", sorted(SERVICES.keys() - OURS))
def test_images_of_others_have_a_fixed_version(name: str) -> None:
    _, tag = SERVICES[name]["image"].split(":")
    assert re.fullmatch(r"v?\d+\.\d+\.\d+", tag)


def test_grafana_has_no_account_to_break_into() -> None:
    environment = SERVICES["grafana"]["environment"]
    assert environment["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    assert environment["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    assert not [name for name in environment if "PASSWORD" in name]


@pytest.mark.parametrize("name", SERVICES)
def test_every_mounted_file_exists_and_cannot_be_written(name: str) -> None:
    for volume in SERVICES[name].get("volumes", []):
        source, _, options = volume.partition(":")
        if source.startswith("."):
            assert (ROOT / source).exists()
            assert options.endswith(":ro")


@pytest.mark.parametrize(
    ("profile", "added"), [("none", set()), ("cache", {"redis"}), ("loadtest", {"loadtest"})]
)
def test_compose_accepts_the_file(profile: str, added: set[str]) -> None:
    command = [*_compose(), "--file", str(COMPOSE), "--profile", profile, "config", "--services"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert set(checked.stdout.split()) == {*USUAL, *added}


def _compose() -> list[str]:
    """Of the second generation: the first one does not know all of the file's keys."""
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]) is None:
            continue
        version = subprocess.run(
            [*command, "version", "--short"], capture_output=True, text=True, check=False
        )
        if version.returncode == 0 and not version.stdout.startswith("1."):
            return command
    pytest.skip("docker compose is not installed")
