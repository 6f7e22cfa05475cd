"""The files under test, read once and typed loosely: they belong to other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DASHBOARD = DEPLOY / "grafana" / "dashboards" / "adrel.json"
PROMETHEUS = DEPLOY / "prometheus" / "prometheus.yml"
COMPOSE = ROOT / "docker-compose.yml"
DOCKERFILE = ROOT / "Dockerfile"


def read_yaml(path: Path) -> Any:  # noqa: ANN401
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def read_json(path: Path) -> Any:  # noqa: ANN401
    return json.loads(path.read_text(encoding="utf-8"))


def dashboard_queries() -> list[tuple[str, str]]:
    """Panel title and PromQL of each query, with Grafana's variables filled in."""
    return [
        (
            panel["title"],
            target["expr"].replace("$__rate_interval", "1m").replace("$job", "adrel"),
        )
        for panel in read_json(DASHBOARD)["panels"]
        for target in panel.get("targets", [])
    ]
