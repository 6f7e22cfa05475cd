from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.promql import labels_in, series_in
from tests.deploy.repository import (
    COMPOSE,
    DASHBOARDS,
    DEPLOY,
    dashboard_queries,
    panels,
    read_json,
    read_yaml,
)

FROM_PROMETHEUS_ITSELF = {"up"}
FROM_THE_SCRAPE = {"job", "instance"}
RECORDED = {
    rule["record"]
    for group in read_yaml(DEPLOY / "prometheus" / "rules" / "recording.yml")["groups"]
    for rule in group["rules"]
}

every_dashboard = pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda path: path.stem)
every_query = pytest.mark.parametrize(("title", "query"), dashboard_queries())


@every_query
def test_every_query_asks_for_series_that_the_service_has(
    title: str, query: str, labels_of: dict[str, set[str]]
) -> None:
    asked = series_in(query)
    assert asked, f"{title}: found no series in {query}"
    assert asked - FROM_PROMETHEUS_ITSELF - RECORDED <= labels_of.keys(), title


@every_query
def test_every_query_uses_labels_that_its_series_have(
    title: str, query: str, labels_of: dict[str, set[str]]
) -> None:
    known = FROM_THE_SCRAPE.union(*(labels_of.get(name, set()) for name in series_in(query)))
    assert labels_in(query) <= known, title


def test_every_metric_of_the_service_is_on_a_dashboard(labels_of: dict[str, set[str]]) -> None:
    asked = set().union(*(series_in(query) for _, query in dashboard_queries()))
    shown = {re.sub(r"_(bucket|sum|count|total)$", "", name) for name in asked}
    exposed = {
        re.sub(r"_(bucket|sum|count|total|created)$", "", name)
        for name in labels_of
        if name.startswith("adrel_")
    }
    assert exposed <= shown


@every_dashboard
def test_every_panel_says_how_to_read_it(dashboard: Path) -> None:
    for panel in panels(dashboard):
        question, _, answer = panel["description"].partition("?")
        assert question, panel["title"]
        assert answer, panel["title"]


@every_dashboard
def test_every_panel_shows_only_what_was_chosen_above(dashboard: Path) -> None:
    variables = {variable["name"] for variable in read_json(dashboard)["templating"]["list"]}
    assert variables == {"job", "instance"}
    for panel in panels(dashboard):
        for target in panel["targets"]:
            for selected in re.findall(r"\b(adrel_\w+|up|process_\w+)\{([^}]*)\}", target["expr"]):
                assert selected[1].startswith('job="$job",instance=~"$instance"'), panel["title"]


@every_dashboard
def test_every_dashboard_leads_to_the_others_and_keeps_the_time(dashboard: Path) -> None:
    [link] = read_json(dashboard)["links"]
    assert (link["type"], link["keepTime"], link["includeVars"]) == ("dashboards", True, True)
    assert all(set(link["tags"]) <= set(read_json(other)["tags"]) for other in DASHBOARDS)


def test_no_two_dashboards_share_a_uid_or_a_title() -> None:
    boards = [read_json(dashboard) for dashboard in DASHBOARDS]
    assert len({board["uid"] for board in boards}) == len(boards)
    assert len({board["title"] for board in boards}) == len(boards)


@every_dashboard
def test_no_two_panels_share_an_id_or_a_place(dashboard: Path) -> None:
    boards = read_json(dashboard)["panels"]
    assert len({panel["id"] for panel in boards}) == len(boards)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in boards)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24  # Grafana's grid


@every_dashboard
def test_every_panel_reads_the_provisioned_data_source(dashboard: Path) -> None:
    [source] = read_yaml(DEPLOY / "grafana/provisioning/datasources/prometheus.yml")["datasources"]
    used = {(one["datasource"]["type"], one["datasource"]["uid"]) for one in panels(dashboard)}
    assert used == {(source["type"], source["uid"])}


def test_grafana_opens_the_dashboard_to_start_with() -> None:
    environment: dict[str, Any] = read_yaml(COMPOSE)["services"]["grafana"]["environment"]
    home = Path(environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert home.name in {dashboard.name for dashboard in DASHBOARDS}


def test_the_runbook_names_panels_that_there_are() -> None:
    runbook = (DEPLOY / "prometheus" / "README.md").read_text(encoding="utf-8")
    boards = [read_json(dashboard) for dashboard in DASHBOARDS]
    titles = {panel["title"] for board in boards for panel in board["panels"]}
    titles |= {board["title"] for board in boards}
    named = re.findall(r"(?<!\*)\*([A-Za-z][^*\n]+)\*(?!\*)", runbook)
    assert len(named) > 20
    known = " / ".join(titles)
    assert [name for name in named if name not in known] == []


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


def all_titles() -> set[str]:
    """Of dashboards, rows and panels."""
    read = [read_json(dashboard) for dashboard in DASHBOARDS]
    inside = [panel["title"] for dashboard in read for panel in dashboard["panels"]]
    return {*inside, *(dashboard["title"] for dashboard in read)}


@pytest.mark.parametrize("page", ["OPERATING.md", "prometheus/README.md"])
def test_what_the_pages_send_operators_to_look_at_is_there(page: str) -> None:
    text = re.sub(r"`[^`]*`", "", (DEPLOY / page).read_text(encoding="utf-8"))
    named = set(re.findall(r"(?<![*\w])\*([^*\s][^*\n]*)\*(?![*\w])", text))
    assert named
    questions = {f"{title.partition('?')[0]}?" for title in all_titles() if "?" in title}
    assert named - all_titles() - questions == set()
