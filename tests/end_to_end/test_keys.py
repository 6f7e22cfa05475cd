"""A service that asks for keys, met by callers with and without one."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cohere
import httpx
import numpy as np
import pytest
import tritonclient.http as triton
from cohere.errors import UnauthorizedError
from tritonclient.utils import InferenceServerException

from service.client import Ad, AdrelClient, WrongEndpoint
from tests.end_to_end.running_service import RunningService, running
from tests.end_to_end.test_serving import ads, start_fails
from tests.waiting import until

FIRST, SECOND, LISTED = "first-key-0123456789", "second-key-0123456789", "listed-key-0123456789"
DEADLINE_S = 30


@pytest.fixture(scope="module")
def keys_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("keys") / "keys"
    file.write_text(f"# ours\n{FIRST}\n")
    return file


@pytest.fixture(scope="module")
def service(tiny_bundle_int8: Path, keys_file: Path) -> Iterator[RunningService]:
    arguments = ("--api-keys-file", str(keys_file))
    with running(tiny_bundle_int8, *arguments, ADREL_API_KEYS=LISTED) as started:
        started.client.headers["X-API-Key"] = (
            LISTED  # what the tests' own look at the metrics needs
        )
        yield started


BODIES: dict[str, dict[str, Any]] = {
    "/v1/score": {"query": "red", "ads": ads("shoe")},
    "/rerank": {"query": "red", "texts": ["shoe"]},
    "/predict": {"inputs": ["red", "shoe"]},
    "/v1/rerank": {"query": "red", "documents": ["shoe"], "model": "m"},
    "/v2/rerank": {"query": "red", "documents": ["shoe"], "model": "m"},
    "/score": {"text_1": "red", "text_2": "shoe"},
}


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer wrong-key-0123456789"}, {"X-API-Key": "# ours"},
     {"Authorization": f"Basic {FIRST}"}],
)  # fmt: skip
def test_every_route_that_scores_needs_a_key(
    service: RunningService, path: str, headers: dict[str, str]
) -> None:
    counted = f'adrel_requests_total{{outcome="unauthorized",route="{path}"}}'
    before = service.metric(counted)
    with httpx.Client(base_url=service.url) as stranger:
        refused = stranger.post(path, json=BODIES[path], headers={**headers, "X-Request-Id": "r1"})
    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"].startswith('Bearer realm="adrel"')
    assert refused.headers["X-Request-Id"] == "r1"
    assert "0123456789" not in refused.text + str(refused.headers)
    assert service.metric(counted) == before + 1


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize(
    "headers",
    [{"Authorization": f"Bearer {FIRST}"}, {"X-API-Key": FIRST},
     {"Authorization": "Basic cHJveHk6b3du", "X-API-Key": LISTED}],
)  # fmt: skip
def test_any_of_the_keys_opens_every_route(
    service: RunningService, path: str, headers: dict[str, str]
) -> None:
    with httpx.Client(base_url=service.url) as caller:
        assert caller.post(path, json=BODIES[path], headers=headers).status_code == 200


def test_a_refusal_is_told_in_the_words_of_each_protocol(service: RunningService) -> None:
    with httpx.Client(base_url=service.url) as stranger:
        told = {path: stranger.post(path, json={}).json() for path in BODIES}
        infer = stranger.post("/v2/models/m/versions/1/infer", json={}).json()
        (other,) = [stranger.get("/v1/model").json()]
    assert told["/v1/score"]["error"]["code"] == other["error"]["code"] == "unauthorized"
    assert told["/rerank"]["error_type"] == told["/predict"]["error_type"] == "Validation"
    assert told["/score"]["error"]["type"] == "unauthorized"
    assert told["/score"]["error"]["code"] == 401
    message = told["/v1/score"]["error"]["message"]
    assert message.startswith("a key is needed; send it as `Authorization: Bearer KEY`")
    for path in ("/v1/rerank", "/v2/rerank"):
        assert told[path]["message"] == told[path]["detail"] == message
    assert infer == {"error": message}
    label = 'adrel_requests_total{outcome="unauthorized",route="/v2/models/{model}/infer"}'
    assert service.metric(label) == 1


def test_probes_are_open_and_all_else_is_closed(service: RunningService) -> None:
    before = service.metric('adrel_unauthorized_total{key="missing"}')
    opened = [
        "/",
        "/playground/playground.js",
        "/livez",
        "/readyz",
        "/health",
        "/v2/health/live",
        "/v2/health/ready",
        "/docs",
        "/openapi.json",
    ]
    closed = ["/metrics", "/v1/model", "/info", "/v2", "/no/such/path", "/openapi.json/", "/livez/",
              "//livez", "/livez/../metrics", "/livez%00", "/info?/livez"]  # fmt: skip
    with httpx.Client(base_url=service.url) as stranger:
        assert {path: stranger.get(path).status_code for path in opened} == dict.fromkeys(
            opened, 200
        )
        assert {
            path: stranger.get(f"{service.url}{path}").status_code for path in closed
        } == dict.fromkeys(closed, 401)
    assert service.metric('adrel_unauthorized_total{key="missing"}') == before + len(closed)


def test_the_openapi_document_says_where_a_key_is_needed_and_how_it_is_sent(
    service: RunningService,
) -> None:
    with httpx.Client(base_url=service.url) as stranger:
        document = stranger.get("/openapi.json").json()
        assert {"bearer", "key"} == document["components"]["securitySchemes"].keys()
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                refused = stranger.request(method, path.format(model="m", version="1"))
                is_closed = refused.status_code == 401
                assert is_closed == (operation.get("security") == [{"bearer": []}, {"key": []}])
                assert is_closed == ("401" in operation["responses"]), path
                if is_closed:
                    assert "WWW-Authenticate" in operation["responses"]["401"]["headers"]
                    made_up = refused.headers["X-Request-Id"]
                    assert made_up


def test_a_key_is_asked_for_before_the_body_is_read(service: RunningService) -> None:
    url = httpx.URL(service.url)
    with socket.create_connection((url.host, url.port or 0), timeout=DEADLINE_S) as stranger:
        stranger.sendall(
            b"POST /v1/score HTTP/1.1\r\nHost: adrel\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n"
        )
        assert stranger.recv(1000).startswith(b"HTTP/1.1 401 Unauthorized\r\n")


def test_other_servers_own_clients_send_the_key_their_way(service: RunningService) -> None:
    model = service.client.get("/v1/model").json()["model"]["name"]
    question: dict[str, Any] = {"model": "m", "query": "red", "documents": ["shoe"]}
    with httpx.Client() as connection:
        known, unknown = (
            cohere.ClientV2(api_key=key, base_url=service.url, httpx_client=connection)
            for key in (FIRST, "x" * 20)
        )
        assert len(known.rerank(**question).results) == 1
        with pytest.raises(UnauthorizedError, match="not known here"):
            unknown.rerank(**question)
    inputs = []
    for name, text in (("query", "red"), ("ad", "shoe")):
        tensor = triton.InferInput(name, [1], "BYTES")
        tensor.set_data_from_numpy(np.array([text], dtype=object))
        inputs.append(tensor)
    with triton.InferenceServerClient(service.url.removeprefix("http://")) as infer:
        key = {"Authorization": f"Bearer {FIRST}"}
        assert infer.infer(model, inputs, headers=key).as_numpy("score").shape == (1,)
        with pytest.raises(InferenceServerException, match="a key is needed"):
            infer.infer(model, inputs)


def test_our_own_client_takes_it_among_its_headers(service: RunningService) -> None:
    key = {"Authorization": f"Bearer {FIRST}"}
    with AdrelClient(service.url, timeout_ms=5000, headers=key) as client:
        assert client.score("red", [Ad("1", text="shoe")]).scores[0].score is not None
    with AdrelClient(service.url, timeout_ms=5000) as client, pytest.raises(WrongEndpoint) as told:
        client.score("red", [Ad("1", text="shoe")])
    assert told.value.code == "unauthorized"


def test_a_key_is_nowhere_but_where_it_was_given(service: RunningService) -> None:
    command = Path(f"/proc/{service.process.pid}/cmdline")
    paths = ("/metrics", "/v1/model", "/openapi.json", "/info")
    shown = [str(service.log), *[service.client.get(path).text for path in paths]]
    if command.exists():
        shown.append(command.read_text())
    assert not any("0123456789" in text for text in shown)


def test_keys_are_changed_without_a_restart(service: RunningService, keys_file: Path) -> None:
    def works(key: str) -> bool:
        return service.client.get("/v1/model", headers={"X-API-Key": key}).is_success

    assert (works(FIRST), works(SECOND)) == (True, False)
    new_file = keys_file.with_name("new")
    new_file.write_text(f"{SECOND}\n{FIRST}\n")
    os.replace(new_file, keys_file)  # noqa: PTH105  # as a secret's volume is changed
    until(lambda: works(SECOND), "the new key never came to hold")
    assert works(FIRST)
    keys_file.write_text(f"{SECOND}\n")
    until(lambda: not works(FIRST), "the old key holds for ever")
    assert works(SECOND)
    assert not [entry for entry in service.log if entry["level"] == "error"]


def test_a_rotation_that_goes_wrong_shows_in_the_metrics_and_locks_nobody_out(
    service: RunningService, keys_file: Path
) -> None:
    failed, n_keys = 'adrel_keys_file_failed{whose="callers"}', 'adrel_keys{whose="callers"}'
    before = keys_file.read_bytes()
    held = service.metric(n_keys)
    keys_file.write_text("no key\n")
    service.reaches(failed, lambda is_so: is_so == 1)
    assert service.metric(n_keys) == held >= 2
    keys_file.write_bytes(before + f"{FIRST}{SECOND}\n".encode())
    service.reaches(n_keys, lambda now: now == held + 1)
    assert service.metric(failed) == 0
    pipe = keys_file.with_name("pipe")
    os.mkfifo(pipe)  # whoever opens it waits for one that writes
    keys_file.rename(keys_file.with_name("aside"))
    pipe.rename(keys_file)
    service.reaches(failed, lambda is_so: is_so == 1)
    assert service.log[-1]["reason"].endswith("it is not a regular file")
    assert service.metric(n_keys) == held + 1
    keys_file.with_name("aside").rename(keys_file)
    service.reaches(failed, lambda is_so: is_so == 0)


def test_keys_that_cannot_be_used_stop_the_start(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text("# none yet\n")
    assert "has no key" in start_fails("--port", "0", "--api-keys-file", str(empty))
