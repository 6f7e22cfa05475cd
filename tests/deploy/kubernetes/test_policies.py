"""What must hold of every workload, and between the resources."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.deploy.kubernetes.manifests import (
    NAMES,
    WHOLE,
    Resource,
    container,
    environment,
    of_kind,
    pod,
    ports,
    rendered,
)

OVERLAYS = ("overlays/cpu", "overlays/gpu")


def labels(deployment: Resource) -> dict[str, str]:
    found: dict[str, str] = deployment["spec"]["template"]["metadata"]["labels"]
    return found


def matching(name: str, selector: dict[str, str]) -> list[Resource]:
    """The Deployments whose pods a selector selects."""
    return [
        one
        for one in of_kind(name, "Deployment").values()
        if selector.items() <= labels(one).items()
    ]


def least_replicas(name: str, deployment: Resource) -> int:
    """As few as there ever are, updates aside."""
    for autoscaler in of_kind(name, "HorizontalPodAutoscaler").values():
        if autoscaler["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]:
            return int(autoscaler["spec"]["minReplicas"])
    return int(deployment["spec"]["replicas"])


@pytest.mark.parametrize("name", NAMES)
def test_no_container_has_or_can_gain_privileges_or_write_to_its_image(name: str) -> None:
    for deployment in of_kind(name, "Deployment").values():
        specification = pod(deployment)
        assert specification["automountServiceAccountToken"] is False
        assert specification["securityContext"]["runAsNonRoot"] is True
        assert specification["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & specification.keys()
        for one in [*specification["containers"], *specification.get("initContainers", [])]:
            assert one["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


@pytest.mark.parametrize("name", NAMES)
def test_every_image_has_one_version_wherever_it_stands(name: str) -> None:
    versions: dict[str, set[str]] = {}
    for deployment in of_kind(name, "Deployment").values():
        specification = pod(deployment)
        for one in [*specification["containers"], *specification.get("initContainers", [])]:
            image, _, version = one["image"].partition(":")
            versions.setdefault(image, set()).add(version)
    assert all(len(found) == 1 and found != {""} for found in versions.values()), versions
    assert "latest" not in str(versions)


@pytest.mark.parametrize("name", NAMES)
def test_selectors_select_pods(name: str) -> None:
    for deployment in of_kind(name, "Deployment").values():
        own = deployment["spec"]["selector"]["matchLabels"]
        assert matching(name, own) == [deployment]
        for constraint in pod(deployment)["topologySpreadConstraints"]:
            assert constraint["labelSelector"]["matchLabels"] == own
    for kind, where in {"Service": "selector", "PodDisruptionBudget": "selector"}.items():
        for resource in of_kind(name, kind).values():
            selector = resource["spec"][where]
            assert len(matching(name, selector.get("matchLabels", selector))) == 1
    for policy in of_kind(name, "NetworkPolicy").values():
        assert len(matching(name, policy["spec"]["podSelector"]["matchLabels"])) == 1


@pytest.mark.parametrize("name", NAMES)
def test_pods_are_spread_over_zones_and_over_the_nodes_of_each(name: str) -> None:
    for deployment in of_kind(name, "Deployment").values():
        constraints = pod(deployment)["topologySpreadConstraints"]
        assert [one["topologyKey"] for one in constraints] == [
            "topology.kubernetes.io/zone",
            "kubernetes.io/hostname",
        ]


@pytest.mark.parametrize("name", NAMES)
def test_every_workload_may_lose_a_pod_and_keeps_others(name: str) -> None:
    budgets = of_kind(name, "PodDisruptionBudget")
    for own_name, deployment in of_kind(name, "Deployment").items():
        assert budgets[own_name]["spec"]["maxUnavailable"] < least_replicas(name, deployment)
        strategy = deployment["spec"]["strategy"]["rollingUpdate"]
        assert strategy["maxUnavailable"] < least_replicas(name, deployment)
        assert strategy["maxSurge"] + strategy["maxUnavailable"] > 0


@pytest.mark.parametrize("name", NAMES)
def test_services_lead_to_the_callers_port_and_never_to_the_admin_port(name: str) -> None:
    for service in of_kind(name, "Service").values():
        [deployment] = matching(name, service["spec"]["selector"])
        [port] = service["spec"]["ports"]
        assert port["targetPort"] == "http"
        assert port["port"] == ports(deployment)["http"]


def test_a_headless_service_tells_the_proxy_each_pod() -> None:
    services = of_kind("base", "Service")
    assert services["adrel-pods"]["spec"]["clusterIP"] == "None"
    assert "clusterIP" not in services["adrel"]["spec"]


@pytest.mark.parametrize("name", NAMES)
def test_network_policies_open_ports_that_pods_have_and_close_the_rest(name: str) -> None:
    for own_name, deployment in of_kind(name, "Deployment").items():
        policies = [
            one["spec"]
            for one in of_kind(name, "NetworkPolicy").values()
            if one["spec"]["podSelector"]["matchLabels"].items() <= labels(deployment).items()
        ]
        assert {"Ingress", "Egress"} <= {kind for one in policies for kind in one["policyTypes"]}
        opened = {
            port["port"]
            for one in policies
            for rule in one.get("ingress", [])
            for port in rule["ports"]
        }
        assert opened <= ports(deployment).keys()
        assert opened == ({"http", "admin"} if own_name == "adrel" else {"http"})
        assert all(rule["from"] for one in policies for rule in one.get("ingress", []))


@pytest.mark.parametrize("name", WHOLE)
def test_pods_of_the_service_may_look_up_names_and_nothing_else(name: str) -> None:
    egress = of_kind(name, "NetworkPolicy")["adrel"]["spec"]["egress"]
    assert [port["port"] for rule in egress for port in rule["ports"]] == [53, 53]


def test_with_a_shared_cache_they_reach_the_redis_that_they_are_told_of() -> None:
    name = "base with shared-cache"
    url = urlsplit(environment(of_kind(name, "Deployment")["adrel"])["ADREL_REDIS_URL"])
    [rule] = of_kind(name, "NetworkPolicy")["adrel-to-redis"]["spec"]["egress"]
    assert rule["ports"] == [{"port": url.port}]
    [to] = rule["to"]
    namespace = to["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
    assert url.hostname == f"redis.{namespace}"


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_proxy_reaches_the_pods_and_they_let_it_in(name: str) -> None:
    policies = of_kind(name, "NetworkPolicy")
    [out, _] = policies["adrel-proxy"]["spec"]["egress"]
    [to] = out["to"]
    assert matching(name, to["podSelector"]["matchLabels"]) == [
        of_kind(name, "Deployment")["adrel"]
    ]
    assert out["ports"] == [{"port": ports(of_kind(name, "Deployment")["adrel"])["http"]}]
    [into] = policies["adrel-from-proxy"]["spec"]["ingress"]
    [by] = into["from"]
    assert matching(name, by["podSelector"]["matchLabels"]) == [
        of_kind(name, "Deployment")["adrel-proxy"]
    ]


def mounted(name: str, deployment: str) -> dict[str, Any]:
    """Where each volume of a container is mounted."""
    found = container(of_kind(name, "Deployment")[deployment])["volumeMounts"]
    return {mount["name"]: mount["mountPath"] for mount in found}


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_proxy_runs_the_script_of_its_config_map_on_the_headless_service(name: str) -> None:
    proxy = of_kind(name, "Deployment")["adrel-proxy"]
    _, script, service, port, folder = container(proxy)["command"]
    places = mounted(name, "adrel-proxy")
    [volume] = [one for one in pod(proxy)["volumes"] if one["name"] == "configuration"]
    files = of_kind(name, "ConfigMap")[volume["configMap"]["name"]]["data"]
    assert script.removeprefix(places["configuration"] + "/") in files
    assert folder == places["run"]  # all else is read-only
    assert [int(port)] == [
        one["port"] for one in of_kind(name, "Service")[service]["spec"]["ports"]
    ]
    listened = {"http": "listen 8080;", "health": "listen 8081;"}
    assert {key: f"listen {number};" for key, number in ports(proxy).items()} == listened
    assert all(line in files["nginx.conf"] for line in listened.values())


@pytest.mark.parametrize("name", NAMES)
def test_everything_that_a_pod_mounts_is_there(name: str) -> None:
    made_by_hand = {"adrel-api-keys"}
    there = {one["metadata"]["name"] for one in rendered(name)} | made_by_hand
    for deployment in of_kind(name, "Deployment").values():
        for volume in pod(deployment)["volumes"]:
            wanted = [
                volume.get("secret", {}).get("secretName"),
                volume.get("configMap", {}).get("name"),
                volume.get("persistentVolumeClaim", {}).get("claimName"),
            ]
            assert {one for one in wanted if one} <= there


def test_the_namespace_refuses_pods_that_ask_for_more() -> None:
    [namespace] = of_kind("base", "Namespace").values()
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
