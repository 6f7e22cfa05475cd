"""The rules ask for what the service has; promtool plays each alert, firing and silent."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.promql import labels_in, series_in
from tests.deploy.repository import COMPOSE, DEPLOY, PROMETHEUS, ROOT, read_yaml

FOLDER = DEPLOY / "prometheus"
RULE_FILES = sorted((FOLDER / "rules").glob("*.yml"))
PLAYED = sorted((ROOT / "tests" / "deploy" / "rules").glob("*.yml"))

RULES: list[dict[str, Any]] = [
    rule for file in RULE_FILES for group in read_yaml(file)["groups"] for rule in group["rules"]
]
ALERTS = [rule for rule in RULES if "alert" in rule]
RECORDED = {rule["record"] for rule in RULES if "record" in rule}


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def test_prometheus_loads_the_rules_here_and_in_the_compose_file() -> None:
    loaded = [file for glob in read_yaml(PROMETHEUS)["rule_files"] for file in FOLDER.glob(glob)]
    assert sorted(loaded) == RULE_FILES
    volumes = read_yaml(COMPOSE)["services"]["prometheus"]["volumes"]
    assert "./deploy/prometheus/rules:/etc/prometheus/rules:ro" in volumes


def test_every_rule_is_promql() -> None:
    checked = promtool("check", "rules", *RULE_FILES)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_alert_does_what_its_examples_say() -> None:
    played = promtool("test", "rules", *PLAYED)
    assert played.returncode == 0, played.stdout + played.stderr


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: str(alert["alert"]))
def test_every_alert_has_an_example_that_fires_and_one_that_does_not(alert: dict[str, Any]) -> None:
    examples = [
        example["exp_alerts"]
        for file in PLAYED
        for test in read_yaml(file)["tests"]
        for example in test["alert_rule_test"]
        if example["alertname"] == alert["alert"]
    ]
    assert [] in examples
    assert any(examples)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.get("alert", rule.get("record"))))
def test_every_rule_asks_for_series_and_labels_that_there_are(
    rule: dict[str, Any], labels_of: dict[str, set[str]]
) -> None:
    asked = series_in(rule["expr"]) - RECORDED
    assert asked <= labels_of.keys() | {"up"}
    known = {"job", "instance", "le"}.union(*(labels_of.get(name, set()) for name in asked))
    assert labels_in(rule["expr"]) <= known


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.get("alert", rule.get("record"))))
def test_every_value_that_a_rule_selects_exists(
    rule: dict[str, Any], label_values: dict[str, set[str]]
) -> None:
    for label, value in re.findall(r'(\w+)!?="([^"]*)"', rule["expr"]):
        assert value in label_values[label]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: str(alert["alert"]))
def test_every_alert_tells_what_is_wrong_and_by_how_much(alert: dict[str, Any]) -> None:
    notes = alert["annotations"]
    assert alert["labels"]["severity"] in ("page", "ticket")
    assert notes["summary"]
    assert "$value" in notes["description"] or alert["expr"].startswith("absent(")


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: str(alert["alert"]))
def test_every_alert_has_a_runbook(alert: dict[str, Any]) -> None:
    runbook = (FOLDER / "README.md").read_text(encoding="utf-8")
    page, _, anchor = alert["annotations"]["runbook"].partition("#")
    assert (ROOT / page).samefile(FOLDER / "README.md")
    assert anchor == alert["alert"].lower()
    section = runbook.partition(f"\n## {alert['alert']}\n")[2].partition("\n## ")[0]
    assert "**Symptom**" in section
    assert "**Do**" in section


def test_every_link_inside_the_runbook_leads_somewhere() -> None:
    runbook = (FOLDER / "README.md").read_text(encoding="utf-8")
    headings = {heading.lower() for heading in re.findall(r"^## (\w+)$", runbook, re.MULTILINE)}
    assert set(re.findall(r"\]\(#(\w+)\)", runbook)) <= headings
