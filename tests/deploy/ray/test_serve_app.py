from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from service.client import Ad, AdrelClient
from tests.end_to_end.running_service import ROOT, RunningService, running

BODY = {
    "query": "red shoe",
    "ads": [
        {"id": "A", "title": "cheap red shoe", "description": "run fast"},
        {"id": "B", "text": "blue bag " * 60},
    ],
    "request_id": "auction-7",
    "min_score": 0.5,
}


@pytest.fixture(scope="module")
def served(cluster: Any, tiny_bundle_int8: Path) -> Iterator[httpx.Client]:  # noqa: ANN401, ARG001  # Ray's
    from ray import serve

    from deploy.ray.serve_app import build

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": port})
    try:
        serve.run(build({"bundle": str(tiny_bundle_int8)}), name="adrel")
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            yield client
    finally:
        serve.shutdown()


@pytest.fixture(scope="module")
def service(tiny_bundle_int8: Path) -> Iterator[RunningService]:
    with running(tiny_bundle_int8) as started:
        yield started


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/score", BODY),
        ("/v1/score", {**BODY, "ads": [{"id": "A"}]}),
        ("/rerank", {"query": "red", "texts": ["red shoe", "bag"]}),
        ("/v2/rerank", {"query": "red", "documents": ["green shoe", "lamp"], "model": "m"}),
        ("/nowhere", {}),
    ],
)
def test_answers_are_those_of_the_service(
    served: httpx.Client, service: RunningService, path: str, body: dict[str, Any]
) -> None:
    expected = service.client.post(path, json=body)
    actual = served.post(path, json=body)
    assert actual.status_code == expected.status_code
    assert without_times(actual) == without_times(expected)


def without_times(response: httpx.Response) -> Any:  # noqa: ANN401  # any JSON
    answer = response.json()
    for name in ("timing_ms", "id", "request_id"):  # made up for each request, or what it took
        if isinstance(answer, dict):
            answer.pop(name, None)
    return answer


def test_a_replica_computes_on_the_cores_that_it_was_given(served: httpx.Client) -> None:
    assert served.get("/v1/model").json()["inference_threads"] == 2


def test_a_replica_that_serves_is_healthy(served: httpx.Client) -> None:
    from ray import serve

    [deployment] = serve.status().applications["adrel"].deployments.values()
    assert deployment.status == "HEALTHY"
    assert served.get("/readyz").json() == {"status": "ready"}


def test_a_callers_request_id_is_kept_beside_the_proxys(served: httpx.Client) -> None:
    answer = served.post("/v1/score", json=BODY)
    assert answer.json()["request_id"] == "auction-7"
    assert "auction-7" in answer.headers.get_list("x-request-id")


def test_the_products_own_client_works_unchanged(served: httpx.Client) -> None:
    with AdrelClient(str(served.base_url), timeout_ms=30_000) as client:
        result = client.score("red shoe", [Ad("A", title="cheap red shoe")])
    assert [ad.id for ad in result.scores] == ["A"]


@pytest.mark.usefixtures("cluster")  # ray is there
def test_settings_of_a_replica_are_checked_as_the_services_own(tmp_path: Path) -> None:
    from deploy.ray.serve_app import replica_settings
    from service.startup_errors import InvalidSetting

    assert replica_settings({"bundle": str(tmp_path)}, 2.0).inference_threads == 2
    assert replica_settings({}, 0.5).inference_threads == 1
    assert replica_settings({}, 1).bundle == ROOT / "bundles/default"
    with pytest.raises(InvalidSetting, match="max_batch_pairs"):
        replica_settings({"max_batch_pairs": "many"}, 1)


@pytest.mark.usefixtures("cluster")  # ray is there
def test_the_config_file_is_one_that_serve_takes() -> None:
    from ray.serve.schema import ServeDeploySchema

    text = (ROOT / "deploy/ray/serve_config.yaml").read_text(encoding="utf-8")
    config = ServeDeploySchema.model_validate(yaml.safe_load(text))
    [application] = config.applications
    assert application.import_path == "deploy.ray.serve_app:build"
    [deployment] = application.deployments
    assert deployment.name == "adrel"
    assert config.http_options.host == "127.0.0.1"
