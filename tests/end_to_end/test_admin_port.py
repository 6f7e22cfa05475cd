"""The operators' port of a running service."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from tests.end_to_end.faulty_service import held
from tests.end_to_end.running_service import RunningService, running
from tests.end_to_end.test_serving import ads
from tests.waiting import until

DEADLINE_S = 30


def admin_url(service: RunningService) -> str:
    (entry,) = [entry for entry in service.log if entry["message"] == "listening for operators"]
    return str(entry["url"])


def test_metrics_are_on_the_admin_port_alone_and_probes_on_both(tiny_bundle_int8: Path) -> None:
    keys = {"ADREL_API_KEYS": "some-key-0123456789"}
    with (
        running(tiny_bundle_int8, "--admin-port", "0", **keys) as service,
        httpx.Client(base_url=admin_url(service), timeout=DEADLINE_S) as admin,
    ):
        key = {"X-API-Key": keys["ADREL_API_KEYS"]}
        assert admin.base_url.host == "127.0.0.1"
        assert service.score({"query": "red", "ads": ads("shoe")}, headers=key).status_code == 200
        assert service.client.get("/metrics", headers=key).status_code == 404
        metrics = admin.get("/metrics")
        assert metrics.status_code == 200
        assert 'adrel_requests_total{outcome="ok",route="/v1/score"} 1.0' in metrics.text
        for client in (admin, service.client):
            assert client.get("/livez").json() == {"status": "live"}
            assert client.get("/readyz").json() == {"status": "ready"}
            assert client.head("/livez").status_code == 200, "which balancers ask"
        assert admin.get("/v1/model").json()["error"]["code"] == "unauthorized"
        assert admin.get("/v1/model", headers=key).status_code == 200
        assert admin.post("/admin/reload").json()["error"]["code"] == "unauthorized"
        assert admin.post("/admin/reload", headers=key).json()["result"] == "unchanged"
        reload = service.client.post("/admin/reload", headers=key)
        assert reload.json()["error"]["code"] == "not_found"
        lost = admin.post("/v1/score", json={}, headers=key).json()["error"]
        assert lost["code"] == "not_found"
        assert lost["message"] == (
            "POST /v1/score: Not Found; the operators' port has /admin/reload, /livez, /metrics, "
            "/readyz, /v1/model, /v1/models"
        )
        (shown,) = [entry["settings"] for entry in service.log if "settings" in entry]
        assert shown["admin_port"] == 0
        assert shown["api_keys"] == "set, not shown"
        assert keys["ADREL_API_KEYS"] not in str(service.log)


def test_keys_of_operators_alone_open_it_where_there_are_any(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    caller = {"X-API-Key": "caller-key-0123456789"}
    operator = {"Authorization": "Bearer operator-key-0123456789"}
    file = tmp_path / "keys"
    file.write_text("operator-key-0123456789\n")
    arguments = ("--admin-port", "0", "--admin-keys-file", str(file))
    with (
        running(tiny_bundle_int8, *arguments, ADREL_API_KEYS=caller["X-API-Key"]) as service,
        httpx.Client(base_url=admin_url(service), timeout=DEADLINE_S) as admin,
    ):
        for path in ("/metrics", "/livez", "/readyz"):
            assert admin.get(path).status_code == 200
        assert admin.post("/admin/reload", headers=caller).status_code == 401
        assert admin.get("/v1/models", headers=caller).status_code == 401
        assert 'adrel_unauthorized_total{key="wrong"} 2.0' in admin.get("/metrics").text
        assert admin.post("/admin/reload", headers=operator).json()["result"] == "unchanged"
        body = {"query": "red", "ads": ads("shoe")}
        assert service.score(body, headers=caller).status_code == 200
        assert service.score(body, headers=operator).status_code == 401
        file.write_text("another-key-0123456789\n")
        until(lambda: admin.get("/v1/models", headers=operator).status_code != 200)
        changed = {"X-API-Key": "another-key-0123456789"}
        assert admin.get("/v1/models", headers=changed).status_code == 200
    assert "key-0123456789" not in str(service.log)


def test_keys_of_operators_leave_callers_without_one(tiny_bundle_int8: Path) -> None:
    with (
        running(
            tiny_bundle_int8, "--admin-port", "0", ADREL_ADMIN_KEYS="operator-key-0123456789"
        ) as service,
        httpx.Client(base_url=admin_url(service), timeout=DEADLINE_S) as admin,
    ):
        assert service.score({"query": "red", "ads": ads("shoe")}).status_code == 200
        assert "401" not in str(service.client.get("/openapi.json").json()["paths"]["/v1/score"])
        assert admin.post("/admin/reload").status_code == 401


def test_it_stays_while_the_service_drains_and_goes_with_it(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    with (
        held(tiny_bundle_int8, tmp_path, "--admin-port", "0", "--drain-timeout-s", "60") as busy,
        ThreadPoolExecutor(1) as executor,
        httpx.Client(base_url=admin_url(busy.service), timeout=DEADLINE_S) as admin,
    ):
        answer = executor.submit(busy.ask)
        until(lambda: "adrel_batches_in_flight 1.0" in admin.get("/metrics").text)
        process = busy.service.process
        process.send_signal(signal.SIGTERM)
        until(lambda: admin.get("/readyz").status_code == 503)
        assert admin.get("/readyz").json()["error"]["message"] == (
            "not ready: draining before a stop"
        )
        assert admin.get("/livez").status_code == admin.head("/livez").status_code == 200
        busy.mend()
        assert answer.result().status_code == 200
        assert process.wait(timeout=DEADLINE_S) == 0
        assert not [entry for entry in busy.service.log if entry["level"] == "error"]
