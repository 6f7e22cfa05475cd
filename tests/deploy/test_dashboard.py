from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from service.api.error_handlers import error_codes
from service.caching.fixed_cache import FixedCache
from service.metrics import Metrics
from tests.deploy.repository import DASHBOARD, DEPLOY, dashboard_queries, read_json, read_yaml

ROUTE = "/v1/score"
FROM_PROMETHEUS_ITSELF = {"up"}
FROM_THE_SCRAPE = {"job", "instance"}


@pytest.fixture(scope="module")
def labels_of() -> dict[str, set[str]]:
    """The labels of each series that the service exposes."""
    metrics = Metrics(CollectorRegistry(), [ROUTE], ["ok", "partial", *error_codes()])
    metrics.model_serves(name="m", version="1", precision="int8", provider="cpu", workers=1)
    metrics.watch_caches(FixedCache(2**16, 5), FixedCache(2**16, 5), joined=int)
    return {
        sample.name: set(sample.labels)
        for family in metrics.registry.collect()
        for sample in family.samples
    }


def panels() -> list[dict[str, Any]]:
    return [panel for panel in read_json(DASHBOARD)["panels"] if panel["type"] != "row"]


def series_in(query: str) -> set[str]:
    return set(re.findall(r"\b(adrel_\w+|up)\b(?=\{)", query))


@pytest.mark.parametrize(("title", "query"), dashboard_queries())
def test_every_query_asks_for_series_that_the_service_has(
    title: str, query: str, labels_of: dict[str, set[str]]
) -> None:
    asked = series_in(query)
    assert asked, f"{title}: found no series in {query}"
    assert asked - FROM_PROMETHEUS_ITSELF <= labels_of.keys(), title


@pytest.mark.parametrize(("title", "query"), dashboard_queries())
def test_every_query_uses_labels_that_its_series_have(
    title: str, query: str, labels_of: dict[str, set[str]]
) -> None:
    known = set(FROM_THE_SCRAPE).union(*(labels_of.get(name, set()) for name in series_in(query)))
    grouped = {
        label.strip() for by in re.findall(r"by \(([^)]*)\)", query) for label in by.split(",")
    }
    matched = set(re.findall(r"[{,](\w+)[!=]", query))
    assert grouped | matched <= known, title


def test_every_metric_of_the_service_is_on_the_dashboard(labels_of: dict[str, set[str]]) -> None:
    asked = set().union(*(series_in(query) for _, query in dashboard_queries()))
    shown = {re.sub(r"_(bucket|sum|count|total)$", "", name) for name in asked}
    exposed = {
        re.sub(r"_(bucket|sum|count|total|created)$", "", name)
        for name in labels_of
        if name.startswith("adrel_")
    }
    assert exposed <= shown


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])
def test_every_panel_says_which_question_it_answers(panel: dict[str, Any]) -> None:
    assert "?" in panel["description"]


def test_no_two_panels_share_an_id_or_a_place() -> None:
    boards = read_json(DASHBOARD)["panels"]
    assert len({panel["id"] for panel in boards}) == len(boards)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in boards)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24  # Grafana's grid


def test_every_panel_reads_the_provisioned_data_source() -> None:
    [source] = read_yaml(DEPLOY / "grafana/provisioning/datasources/prometheus.yml")["datasources"]
    used = {(panel["datasource"]["type"], panel["datasource"]["uid"]) for panel in panels()}
    assert used == {(source["type"], source["uid"])}


def test_every_query_is_promql(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    rules = [
        {"record": f"panel:query:{number}", "expr": query}
        for number, (_, query) in enumerate(dashboard_queries())
    ]
    file = tmp_path / "rules.yml"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    checked = subprocess.run(
        [promtool, "check", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(rules)} rules found" in checked.stdout
