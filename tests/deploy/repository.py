"""The files under test, read once and typed loosely: they belong to other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DASHBOARDS = sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
PROMETHEUS = DEPLOY / "prometheus" / "prometheus.yml"
COMPOSE = ROOT / "docker-compose.yml"
DOCKERFILE = ROOT / "Dockerfile"


def read_yaml(path: Path) -> Any:  # noqa: ANN401
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def read_json(path: Path) -> Any:  # noqa: ANN401
    return json.loads(path.read_text(encoding="utf-8"))


def panels(dashboard: Path) -> list[dict[str, Any]]:
    """All that show something."""
    return [panel for panel in read_json(dashboard)["panels"] if panel["type"] != "row"]


def dashboard_queries(rate_interval: str = "1m") -> list[tuple[str, str]]:
    """Panel title and PromQL of each query, with Grafana's variables filled in; none twice."""
    variables = {"$__rate_interval": rate_interval, "$job": "adrel", "$instance": ".*"}
    queries = {}
    for dashboard in DASHBOARDS:
        for panel in panels(dashboard):
            for target in panel["targets"]:
                query = target["expr"]
                for variable, value in variables.items():
                    query = query.replace(variable, value)
                queries[query] = f"{dashboard.stem}: {panel['title']}"
    return [(title, query) for query, title in queries.items()]
