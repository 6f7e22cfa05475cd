from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from tests.deploy.repository import COMPOSE, DEPLOY, PROMETHEUS, read_yaml


def test_prometheus_scrapes_the_service_of_the_compose_file() -> None:
    [job] = read_yaml(PROMETHEUS)["scrape_configs"]
    [target] = job["static_configs"][0]["targets"]
    name, port = target.split(":")
    assert read_yaml(COMPOSE)["services"][name]["ports"][0].endswith(f":{port}")


def test_grafana_reckons_with_the_interval_at_which_prometheus_scrapes() -> None:
    [source] = read_yaml(DEPLOY / "grafana/provisioning/datasources/prometheus.yml")["datasources"]
    assert source["jsonData"]["timeInterval"] == read_yaml(PROMETHEUS)["global"]["scrape_interval"]


def test_prometheus_accepts_its_configuration() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    checked = subprocess.run(
        [promtool, "check", "config", str(PROMETHEUS)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert not re.search("WARN|deprecated", checked.stdout + checked.stderr)
