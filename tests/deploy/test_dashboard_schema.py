"""What Grafana would draw wrongly or not at all, without a word.

Checked by hand too: every dashboard against the types of @grafana/schema 12.0.2 (2026-11-30).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.promql import series_in
from tests.deploy.repository import COMPOSE, DASHBOARDS, DEPLOY, panels, read_json, read_yaml

# Of Grafana 12.0.2, the one in docker-compose.yml. A newer schema would be read as if it were old.
NEWEST_SCHEMA = 41
# Of those in @grafana/data 12.0.2, valueFormats/categories.ts. Any other is shown as a suffix.
UNITS = {"none", "short", "percentunit", "s", "bytes", "ops", "reqps"}
PANEL_TYPES = {"heatmap", "row", "stat", "timeseries"}
BUILT_IN = {"__rate_interval", "__all"}

every_dashboard = pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda path: path.stem)


def units(value: Any) -> list[str]:  # noqa: ANN401  # any JSON
    if isinstance(value, list):
        return [unit for one in value for unit in units(one)]
    if not isinstance(value, dict):
        return []
    own = [value["unit"]] if "unit" in value else []
    return own + [unit for one in value.values() for unit in units(one)]


def grouped_by(query: str) -> set[str] | None:
    """The labels that an aggregation leaves; None where there is none of them."""
    if not re.search(r"\b(?:sum|max|min|avg|count|histogram_quantile)\b", query):
        return None
    lists = re.findall(r"\bby \(([^)]*)\)", query)
    return {label.strip() for names in lists for label in names.split(",")}


@every_dashboard
def test_the_schema_is_one_that_grafana_reads(dashboard: Path) -> None:
    assert 37 <= read_json(dashboard)["schemaVersion"] <= NEWEST_SCHEMA  # 37 has showLegend


@every_dashboard
def test_every_panel_is_of_a_type_that_grafana_brings(dashboard: Path) -> None:
    assert {panel["type"] for panel in read_json(dashboard)["panels"]} <= PANEL_TYPES


@every_dashboard
def test_every_unit_is_one_that_grafana_knows(dashboard: Path) -> None:
    used = units(read_json(dashboard))
    assert used
    assert set(used) <= UNITS


@every_dashboard
def test_every_variable_that_is_used_is_defined(dashboard: Path) -> None:
    board = read_json(dashboard)
    defined = {variable["name"] for variable in board["templating"]["list"]}
    used = re.findall(r"\$\{?(\w+)", json.dumps(board))
    assert set(used) - BUILT_IN == defined


@every_dashboard
def test_every_variable_looks_for_its_values_in_series_of_the_service(
    dashboard: Path, labels_of: dict[str, set[str]]
) -> None:
    for variable in read_json(dashboard)["templating"]["list"]:
        query = variable["query"]["query"]
        assert variable["definition"] == query
        assert series_in(query)
        assert series_in(query) <= labels_of.keys()
        assert query.endswith(f", {variable['name']})")


@every_dashboard
def test_no_two_queries_of_a_panel_share_an_id(dashboard: Path) -> None:
    for panel in panels(dashboard):
        ids = [target["refId"] for target in panel["targets"]]
        assert len(set(ids)) == len(ids), panel["title"]


@every_dashboard
def test_a_legend_names_labels_that_its_query_keeps(
    dashboard: Path, labels_of: dict[str, set[str]]
) -> None:
    for panel in panels(dashboard):
        for target in panel["targets"]:
            query = target["expr"]
            kept = grouped_by(query)
            if kept is None:
                kept = {"job", "instance"}.union(
                    *(labels_of.get(name, set()) for name in series_in(query))
                )
            named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert named <= kept, panel["title"]


@every_dashboard
def test_an_override_is_of_a_series_that_the_panel_has(dashboard: Path) -> None:
    for panel in panels(dashboard):
        legends = {target["legendFormat"] for target in panel["targets"]}
        for override in panel["fieldConfig"].get("overrides", []):
            assert override["matcher"]["id"] == "byName"
            assert override["matcher"]["options"] in legends, panel["title"]


@every_dashboard
def test_every_legend_is_shown(dashboard: Path) -> None:
    for panel in panels(dashboard):
        if panel["type"] == "timeseries":
            assert panel["options"]["legend"]["showLegend"] is True, panel["title"]


@every_dashboard
def test_a_heatmap_draws_the_buckets_of_the_histogram(dashboard: Path) -> None:
    for panel in panels(dashboard):
        if panel["type"] == "heatmap":
            [target] = panel["targets"]
            assert target["expr"].startswith("sum by (le) ("), panel["title"]
            assert (target["format"], target["legendFormat"]) == ("heatmap", "{{le}}")
            assert panel["options"]["calculate"] is False


def test_grafana_finds_the_dashboards_and_prometheus_where_compose_puts_them() -> None:
    services = read_yaml(COMPOSE)["services"]
    mounted = {volume.split(":")[1] for volume in services["grafana"]["volumes"]}
    [provider] = read_yaml(DEPLOY / "grafana/provisioning/dashboards/adrel.yml")["providers"]
    assert provider["options"]["path"] in mounted
    [source] = read_yaml(DEPLOY / "grafana/provisioning/datasources/prometheus.yml")["datasources"]
    name, port = source["url"].removeprefix("http://").split(":")
    assert services[name]["ports"][0].endswith(f":{port}")


def test_the_schema_that_is_expected_belongs_to_the_grafana_in_use() -> None:
    assert read_yaml(COMPOSE)["services"]["grafana"]["image"] == "grafana/grafana:12.0.2"
