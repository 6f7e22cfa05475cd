"""Metrics, rules and autoscaling are those of the rest of the project."""

from __future__ import annotations

import re
import shlex

import pytest
from prometheus_client.metrics_core import Metric

from deploy.capacity.__main__ import main
from deploy.kubernetes import prometheus_rule
from service.api import probes
from tests.deploy.kubernetes.manifests import KUBERNETES, container, of_kind, ports
from tests.deploy.repository import PROMETHEUS, read_yaml

AUTOSCALING = KUBERNETES / "components" / "autoscaling"


def test_the_prometheus_rule_is_what_the_rules_make() -> None:
    written = prometheus_rule.WRITTEN.read_text(encoding="utf-8")
    assert written == prometheus_rule.prometheus_rule(), "run deploy.kubernetes.prometheus_rule"


def test_the_prometheus_rule_has_every_rule_once_and_unchanged() -> None:
    groups = read_yaml(prometheus_rule.WRITTEN)["spec"]["groups"]
    ours = [
        rule
        for path in sorted(prometheus_rule.RULES.glob("*.yml"))
        for group in read_yaml(path)["groups"]
        for rule in group["rules"]
    ]
    assert [rule for group in groups for rule in group["rules"]] == ours
    names = [group["name"] for group in groups]
    assert len(names) == len(set(names))  # the operator's resource is keyed by them


def test_prometheus_scrapes_the_pods_as_it_does_elsewhere() -> None:
    [monitor] = of_kind("overlays/cpu", "ServiceMonitor").values()
    [endpoint] = monitor["spec"]["endpoints"]
    scraped = read_yaml(PROMETHEUS)["global"]
    assert endpoint["interval"] == scraped["scrape_interval"]
    assert endpoint["scrapeTimeout"] == scraped["scrape_timeout"]
    assert endpoint["targetPort"] in ports(of_kind("overlays/cpu", "Deployment")["adrel"])
    assert endpoint["path"] in {
        getattr(route, "path", "") for route in probes.metrics_router.routes
    }


def test_prometheus_finds_the_pods_by_one_service_whose_job_the_rules_know() -> None:
    [monitor] = of_kind("overlays/cpu", "ServiceMonitor").values()
    selector = monitor["spec"]["selector"]["matchLabels"].items()
    services = of_kind("overlays/cpu", "Service").values()
    [found] = [one for one in services if selector <= one["metadata"].get("labels", {}).items()]
    assert found["metadata"]["labels"][monitor["spec"]["jobLabel"]].startswith("adrel")


def test_the_autoscaler_looks_at_a_metric_that_the_service_has(families: list[Metric]) -> None:
    [autoscaler] = of_kind("overlays/cpu", "HorizontalPodAutoscaler").values()
    [metric] = autoscaler["spec"]["metrics"]
    name = metric["pods"]["metric"]["name"]
    [rule] = read_yaml(AUTOSCALING / "prometheus_adapter_rules.yaml")["rules"]
    assert rule["name"] == {"matches": f"^{name}$", "as": name}
    assert rule["seriesQuery"].startswith(name + "{")
    assert {family.name: family.type for family in families}[name] == "gauge"


def test_the_autoscaler_s_target_is_the_plan_s(capsys: pytest.CaptureFixture[str]) -> None:
    text = (AUTOSCALING / "horizontal_pod_autoscaler.yaml").read_text(encoding="utf-8")
    [arguments] = re.findall(r"# +python -m deploy\.capacity (.*)\n", text)
    assert main(shlex.split(arguments)) == 0
    told = re.search(r"adrel_queue_seconds at ([\d.]+) s", capsys.readouterr().out)
    assert told is not None
    [metric] = of_kind("overlays/cpu", "HorizontalPodAutoscaler")["adrel"]["spec"]["metrics"]
    target_ms = round(float(told[1]) * 1000)
    assert metric["pods"]["target"]["averageValue"] == f"{target_ms}m"
    assert "--hit-share 0 " in arguments  # a fleet that starts has nothing cached
    page = (KUBERNETES / "README.md").read_text(encoding="utf-8")
    assert f"{target_ms} ms, rounded from\n  `python -m deploy.capacity {arguments}`" in page
    cores = container(of_kind("overlays/cpu", "Deployment")["adrel"])["resources"]["limits"]["cpu"]
    assert f"--cores-per-pod {cores}" in arguments


def test_an_applied_deployment_does_not_undo_the_autoscaler() -> None:
    assert "replicas" not in of_kind("overlays/cpu", "Deployment")["adrel"]["spec"]
