"""Bodies and callers of the worst kind, at every route that takes a body."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.end_to_end.running_service import RunningService, running
from tests.end_to_end.test_serving import ads
from tests.examples import examples

BODY_TIMEOUT_S = 0.3
WAIT_S = 30


@pytest.fixture(scope="module")
def service(tiny_bundle_int8: Path) -> Iterator[RunningService]:
    arguments = ("--max-body-bytes", "50000", "--body-timeout-s", str(BODY_TIMEOUT_S))
    with running(tiny_bundle_int8, *arguments) as started:
        yield started


@pytest.fixture(scope="module")
def document(service: RunningService) -> dict[str, Any]:
    """The OpenAPI document."""
    found: dict[str, Any] = service.client.get("/openapi.json").json()
    return found


TENSORS = [{"name": name, "shape": [1], "datatype": "BYTES", "data": ["shoe"]}
           for name in ("query", "ad")]  # fmt: skip
GOOD_BODIES: dict[str, dict[str, Any]] = {
    "/v1/score": {"query": "red", "ads": ads("shoe"), "request_id": "r1",
                  "min_score": 0.5, "priority": "batch"},
    "/v1/explain": {"query": "red", "ad": {"text": "shoe"}, "request_id": "r1"},
    "/rerank": {"query": "red", "texts": ["shoe"], "raw_scores": False, "truncate": True},
    "/predict": {"inputs": [["red", "shoe"]], "raw_scores": False},
    "/v1/rerank": {"model": "m", "query": "red", "documents": [{"text": "shoe"}], "top_n": 1},
    "/v2/rerank": {"model": "m", "query": "red", "documents": ["shoe"], "top_n": 1},
    "/score": {"text_1": "red", "text_2": ["shoe"], "priority": 0},
    "/v2/models/{model}/infer": {"id": "1", "inputs": TENSORS, "parameters": {"priority": 1}},
    "/v2/models/{model}/versions/{version}/infer": {"inputs": TENSORS},
}  # fmt: skip


def test_every_route_with_a_body_is_tried(document: dict[str, Any]) -> None:
    taking = {path for path, methods in document["paths"].items() if "post" in methods}
    assert taking == set(GOOD_BODIES)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@st.composite
def bodies(draw: st.DrawFn, good: dict[str, Any]) -> bytes:
    """Near a good body: another value somewhere, then bytes taken, put in or repeated."""
    fields = dict(good)
    for name in draw(st.lists(st.sampled_from(sorted(good)), max_size=2, unique=True)):
        value = fields[name]
        if isinstance(value, list) and draw(st.booleans()):
            fields[name] = [*value, draw(JSON)]
        elif isinstance(value, list) and isinstance(value[0], dict) and draw(st.booleans()):
            key = draw(st.sampled_from(sorted(value[0])))
            fields[name] = [{**value[0], key: draw(JSON)}]
        else:
            fields[name] = draw(JSON)
    content = json.dumps(fields).encode()
    for _ in range(draw(st.integers(0, 2))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(len(content), start + 20)))
        put = st.binary(max_size=4) | st.sampled_from(
            [
                b"",
                content[start:end] * 2,
                b"NaN",
                b"1e999",
                b"\\ud800",
                b"\\u0000",
                b'"',
                b"[" * 500,
            ]
        )
        content = content[:start] + draw(put) + content[end:]
    return content


def check_answer(document: dict[str, Any], path: str, response: httpx.Response) -> None:
    """No fault of ours, and what the OpenAPI document promises for the status."""
    assert response.status_code in (200, 400, 404, 413, 415, 422), response.text
    promised = document["paths"][path]["post"]["responses"]
    entry = promised.get(str(response.status_code)) or promised["default"]
    schema = entry["content"]["application/json"]["schema"]
    jsonschema.validate(response.json(), {**schema, "components": document["components"]})
    assert response.status_code == 200 or len(response.content) < 20_000
    assert "Traceback" not in response.text


@pytest.mark.parametrize("path", GOOD_BODIES)
@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_comes_is_answered_as_the_document_says(
    service: RunningService, document: dict[str, Any], path: str, data: st.DataObject
) -> None:
    content = data.draw(bodies(GOOD_BODIES[path]) | st.binary(max_size=50))
    model = service.client.get("/v1/model").json()["model"]
    address = path.format(model=model["name"], version=model["version"])
    headers = {"Content-Type": "application/json"}
    response = service.client.post(address, content=content, headers=headers, timeout=WAIT_S)
    check_answer(document, path, response)


@pytest.mark.parametrize("path", GOOD_BODIES)
@pytest.mark.parametrize("change", ["as it is", "long name", "long value", "deep"])
def test_the_good_body_is_good_and_long_names_and_values_are_not_echoed(
    service: RunningService, document: dict[str, Any], path: str, change: str
) -> None:
    model = service.client.get("/v1/model").json()["model"]
    address = path.format(model=model["name"], version=model["version"])
    fields = dict(GOOD_BODIES[path])
    if change == "long name":
        fields["x" * 20_000] = 0
    elif change == "long value":
        fields |= dict.fromkeys(set(fields) & {"priority", "top_n", "truncate"}, "x" * 20_000)
        fields["inputs" if "inputs" in fields else "query"] = [{"name": "x" * 20_000}]
    content = b"[" * 50_000 if change == "deep" else json.dumps(fields).encode()
    headers = {"Content-Type": "application/json"}
    response = service.client.post(address, content=content, headers=headers)
    check_answer(document, path, response)
    if change == "as it is":
        assert response.status_code == 200
    if response.status_code != 200:
        assert "x" * 1000 not in response.text


def test_too_many_pairs_are_counted_before_they_are_looked_at(service: RunningService) -> None:
    answer = service.client.post("/predict", json={"inputs": [["red", "shoe"], *[["red"]] * 1100]})
    assert answer.status_code == 413
    assert "inputs: got 1101, the limit is 1000" in answer.json()["error"]


def test_long_paths_types_and_ids_are_not_echoed_either(service: RunningService) -> None:
    long = "x" * 5000
    answers = [
        service.client.get(f"/{long}"),
        service.client.post(f"/v2/models/{long}/infer", content=b"{}"),
        service.client.post(f"/v2/models/{long}/unload", content=b"{}"),
        service.client.post("/v1/score", content=b"{}", headers={"Content-Type": long}),
        service.score({}, headers={"X-Request-Id": long}),
        service.score(
            {"query": "q", "ads": ads("x")}, headers={"X-Request-Timeout-Ms": "1" * 5000}
        ),
    ]
    for answer in answers:
        assert 400 <= answer.status_code < 500
        assert "x" * 1000 not in answer.text + str(answer.headers)
        assert "1" * 1000 not in answer.text


@pytest.mark.parametrize("path", GOOD_BODIES)
def test_a_body_in_dribbles_gets_408_in_the_words_of_the_route(
    service: RunningService, document: dict[str, Any], path: str
) -> None:
    url, model = httpx.URL(service.url), service.client.get("/v1/model").json()["model"]
    address = path.format(model=model["name"], version=model["version"])
    enough = threading.Event()
    with socket.create_connection((url.host, url.port or 0), timeout=WAIT_S) as connection:

        def dribble() -> None:
            while not enough.wait(BODY_TIMEOUT_S / 10):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return

        connection.sendall(
            f"POST {address} HTTP/1.1\r\nHost: adrel\r\nContent-Type: application/json\r\n"
            "Content-Length: 1000\r\n\r\n".encode()
        )
        dribbling = threading.Thread(target=dribble)
        dribbling.start()
        answer = b""
        try:
            while (piece := connection.recv(10_000)) != b"":
                answer += piece
        except ConnectionResetError:
            pass  # what was sent when nobody listened any more
        finally:
            enough.set()
            dribbling.join()
    head, _, content = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b"\r\nconnection: close" in head.lower()
    assert b"not complete 0.3 s after the headers" in content
    promised = document["paths"][path]["post"]["responses"]["408"]
    schema = promised["content"]["application/json"]["schema"]
    jsonschema.validate(json.loads(content), {**schema, "components": document["components"]})


def head_of(n_bytes: int) -> bytes:
    """A request without a body, of so many bytes."""
    head = b"GET /livez HTTP/1.1\r\nHost: adrel\r\nX-Long: %s\r\n\r\n"
    return head % (b"x" * (n_bytes - len(head % b"")))


def test_a_head_that_is_too_long_and_a_crowd_are_turned_away(tiny_bundle_int8: Path) -> None:
    with running(tiny_bundle_int8, "--max-connections", "3") as small:
        url = httpx.URL(small.url)
        address = (url.host, url.port or 0)
        assert small.metric("adrel_connections") == 1
        for n_bytes, status in ((65_536, b"200"), (65_537, b"431"), (70_000, b"431")):
            with socket.create_connection(address, timeout=WAIT_S) as caller:
                caller.sendall(head_of(n_bytes))
                answer = caller.recv(1000)
            assert answer.startswith(b"HTTP/1.1 " + status)
            assert (b"the limit of 65536 bytes" in answer) == (status == b"431")
        assert small.metric('adrel_connections_cut_total{reason="head_too_large"}') == 2
        small.reaches("adrel_connections", lambda n_open: n_open == 1)
        crowd = [socket.create_connection(address, timeout=WAIT_S) for _ in range(2)]
        small.reaches("adrel_connections", lambda n_open: n_open == 3)
        crowd.append(socket.create_connection(address, timeout=WAIT_S))
        assert crowd[-1].recv(1000).startswith(b"HTTP/1.1 503 Service Unavailable")
        assert small.metric('adrel_connections_cut_total{reason="limit"}') == 1
        for connection in crowd:
            connection.close()
        small.reaches("adrel_connections", lambda n_open: n_open == 1)


def test_what_is_no_http_is_counted_and_fills_no_log(service: RunningService) -> None:
    url = httpx.URL(service.url)
    for _ in range(100):
        with socket.create_connection((url.host, url.port or 0), timeout=WAIT_S) as caller:
            caller.sendall(b"junk\r\n\r\n")
            assert caller.recv(1000).startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert service.metric('adrel_connections_cut_total{reason="malformed"}') >= 100
    told = [entry for entry in service.log if "Invalid HTTP" in entry["message"]]
    assert 0 < len(told) < 100


def test_nothing_of_this_was_a_fault_of_ours(service: RunningService) -> None:
    assert not [entry for entry in service.log if entry["level"] == "error"]
    assert service.client.get("/readyz").status_code == 200
