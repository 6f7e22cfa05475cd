"""What an operator sees of a running service: its log, its headers, its readiness."""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.running_service import (
    RunningService,
    running,
)
from tests.waiting import until

MARKER = "zebrafish"
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"

SERVER_TIMING = re.compile(
    r"encode;dur=[\d.]+, queue;dur=[\d.]+, inference;dur=[\d.]+, total;dur=[\d.]+"
)


@pytest.fixture(scope="module")
def observed(tiny_bundle_fp32: Path) -> Iterator[RunningService]:
    with running(tiny_bundle_fp32) as service:
        yield service


def marked_bodies() -> list[tuple[str, Any]]:
    """Requests that end in all sorts of ways, each with a text that no log may show."""
    ads = [{"id": "a", "text": f"{MARKER} shoe"}]
    return [
        ("/v1/score", {"query": MARKER, "ads": ads}),
        ("/v1/score", {"query": f"{MARKER} late", "ads": ads, "timeout_ms": 0.001}),
        ("/v1/score", {"query": MARKER, "ads": [{"id": "a", "text": 5, MARKER: MARKER}]}),
        ("/v1/score", {"query": MARKER, "ads": [{"id": "a", "text": MARKER}] * 600}),
        ("/v1/score", {"query": MARKER, "ads": ads, "request_id": f"{MARKER} no id"}),
        ("/v1/score", {"text_1": MARKER, "text_2": [MARKER]}),
        ("/rerank", {"query": MARKER, "texts": [MARKER, 7]}),
        ("/v2/rerank", {"query": MARKER, "documents": [MARKER], "model": MARKER}),
        ("/score", {"text_1": MARKER, "text_2": MARKER}),
        ("/predict", {"inputs": [[MARKER, MARKER]]}),
        ("/v1/score", MARKER),
        (f"/{MARKER}", {"query": MARKER}),
    ]


def test_no_text_of_a_request_stands_in_the_log_at_any_level(tiny_bundle_fp32: Path) -> None:
    with running(tiny_bundle_fp32, "--log-level", "debug", "--log-requests") as service:
        for path, body in marked_bodies():
            service.client.post(path, json=body, headers={"X-Request-Timeout-Ms": MARKER})
            service.client.post(path, json=body)
        service.client.post("/v1/score", content=f'{{"{MARKER}'.encode())
    lines = [entry for entry in service.log if entry["logger"] == "service.api.request_log"]
    assert len({line["outcome"] for line in lines}) >= 4
    assert MARKER not in json.dumps(service.log)


def test_a_request_that_ended_badly_has_a_line_with_its_id_and_its_callers_trace(
    observed: RunningService,
) -> None:
    trace = {"traceparent": f"00-{TRACE_ID}-00f067aa0ba902b7-01"}
    good = {"query": "shoe", "ads": [{"id": "a", "text": "bag"}]}
    observed.score(good, headers={"X-Request-Id": "good", **trace})
    observed.score({**good, "ads": []}, headers={"X-Request-Id": "bad", **trace})
    until(lambda: any("request_id" in entry for entry in observed.log), "no line came")
    [line] = [entry for entry in observed.log if "request_id" in entry]
    assert (line["request_id"], line["outcome"]) == ("bad", "invalid_request")
    assert line["trace_id"] == TRACE_ID
    assert {"ts", "level", "logger", "message"} <= line.keys()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/score", {"query": "shoe", "ads": [{"id": "a", "text": "bag"}]}),
        ("/v1/score", {"text_1": "shoe", "text_2": ["bag"]}),
        ("/rerank", {"query": "shoe", "texts": ["bag"]}),
    ],
)
def test_an_answer_with_scores_says_in_a_header_where_its_time_went(
    observed: RunningService, path: str, body: dict[str, Any]
) -> None:
    answer = observed.client.post(path, json=body)
    assert SERVER_TIMING.fullmatch(answer.headers["Server-Timing"])
    for stage, value in answer.json().get("timing_ms", {}).items() if "ads" in body else ():
        assert f"{stage};dur={value:.3f}" in answer.headers["Server-Timing"]


def test_the_process_tells_its_readiness_its_release_and_its_loops_lag(
    observed: RunningService,
) -> None:
    text = observed.client.get("/metrics").text
    assert "adrel_ready 1.0" in text.splitlines()
    assert re.search(r'^adrel_build_info{release="[^"]+"} 1.0$', text, re.MULTILINE)
    observed.reaches("adrel_event_loop_lag_seconds_count", lambda n_lags: n_lags > 0)


def test_a_collector_gets_the_spans_of_a_request_in_its_callers_trace(
    tiny_bundle_fp32: Path,
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    proto = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    exported: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the library's name
            body = self.rfile.read(int(self.headers["Content-Length"]))
            encoded = self.headers.get("Content-Encoding") == "gzip"
            exported.append(gzip.decompress(body) if encoded else body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Collector) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{collector.server_port}"
        with running(tiny_bundle_fp32, OTEL_EXPORTER_OTLP_ENDPOINT=url) as service:
            body = {"query": "shoe", "ads": [{"id": "a", "text": "bag"}]}
            headers = {"traceparent": f"00-{TRACE_ID}-00f067aa0ba902b7-01"}
            assert service.score(body, headers=headers).status_code == 200
        collector.shutdown()  # the service has stopped, so all was exported
    resources = [
        resource
        for request in exported
        for resource in proto.ExportTraceServiceRequest.FromString(request).resource_spans
    ]
    spans = [span for one in resources for scope in one.scope_spans for span in scope.spans]
    names = {attribute.value.string_value for attribute in resources[0].resource.attributes}
    assert "adrel" in names
    assert {"POST /v1/score", "encode", "inference"} <= {span.name for span in spans}
    assert {span.trace_id.hex() for span in spans} == {TRACE_ID}
