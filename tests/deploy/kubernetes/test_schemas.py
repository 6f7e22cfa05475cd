"""Every rendered resource against the schema of its kind."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from tests.deploy.kubernetes.manifests import NAMES, Resource, of_kind, rendered
from tests.deploy.repository import DASHBOARDS

OLDEST, NEWEST = "1.30", "1.37"  # a preStop `sleep` needs no feature gate from 1.30 on

LABELS = {"type": "object", "additionalProperties": {"type": "string"}}
DURATION = {"type": "string", "pattern": r"^([0-9]+(ms|[smhdwy]))+$"}


def closed(required: list[str], **properties: Any) -> dict[str, Any]:  # noqa: ANN401  # schemas
    """An object with these fields and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


# The fields that we use, written from the API reference of the Prometheus operator; others are
# refused, so that a misspelt one is noticed.
RULE = closed(
    ["expr"],
    record={"type": "string", "pattern": "^[a-zA-Z_:][a-zA-Z0-9_:]*$"},
    alert={"type": "string", "minLength": 1},
    expr={"type": "string", "minLength": 1},
    labels=LABELS,
    annotations=LABELS,
    **{"for": DURATION},
)
SPECIFICATIONS = {
    "ServiceMonitor": closed(
        ["selector", "endpoints"],
        jobLabel={"type": "string"},
        selector=closed(["matchLabels"], matchLabels=LABELS),
        endpoints={
            "type": "array",
            "minItems": 1,
            "items": closed(
                [],
                targetPort={"type": ["string", "integer"]},
                path={"type": "string", "pattern": "^/"},
                interval=DURATION,
                scrapeTimeout=DURATION,
            ),
        },
    ),
    "PrometheusRule": closed(
        ["groups"],
        groups={
            "type": "array",
            "minItems": 1,
            "items": closed(
                ["name", "rules"],
                name={"type": "string", "minLength": 1},
                rules={"type": "array", "minItems": 1, "items": RULE},
            ),
        },
    ),
}


def schema_of_ours(resource: Resource) -> dict[str, Any]:
    return closed(
        ["apiVersion", "kind", "metadata", "spec"],
        apiVersion={"const": "monitoring.coreos.com/v1"},
        kind={"const": resource["kind"]},
        metadata=closed(
            ["name", "namespace"],
            name={"type": "string"},
            namespace={"type": "string"},
            labels=LABELS,
        ),
        spec=SPECIFICATIONS[resource["kind"]],
    )


def all_resources(*, of_kubernetes: bool) -> list[Resource]:
    """Of all that can be rendered, each once."""
    every = {json.dumps(one): one for name in NAMES for one in rendered(name)}
    return [one for one in every.values() if (one["kind"] in SPECIFICATIONS) is not of_kubernetes]


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_the_schemas_of_kubernetes_hold(version: str) -> None:
    validator = pytest.importorskip("kubernetes_validate")
    for resource in all_resources(of_kubernetes=True):
        validator.validate(resource, version, strict=True)


def test_the_schemas_of_the_prometheus_operator_hold() -> None:
    resources = all_resources(of_kubernetes=False)
    assert {one["kind"] for one in resources} == SPECIFICATIONS.keys()
    for resource in resources:
        jsonschema.validate(resource, schema_of_ours(resource))


@pytest.mark.parametrize("name", NAMES)
def test_all_resources_are_in_one_namespace(name: str) -> None:
    namespaced = [one for one in rendered(name) if one["kind"] != "Namespace"]
    assert {one["metadata"].get("namespace") for one in namespaced} == {"adrel"}


@pytest.mark.parametrize("name", NAMES)
def test_no_two_resources_have_one_name(name: str) -> None:
    names = [(one["kind"], one["metadata"]["name"]) for one in rendered(name)]
    assert len(names) == len(set(names))


def test_all_dashboards_are_in_the_config_map() -> None:
    [dashboards] = [
        one
        for one in of_kind("overlays/cpu", "ConfigMap").values()
        if "grafana_dashboard" in one["metadata"].get("labels", {})
    ]
    assert dashboards["data"] == {
        path.name: path.read_text(encoding="utf-8") for path in DASHBOARDS
    }
