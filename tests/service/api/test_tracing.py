from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from service.api.recording import once_answered
from service.api.tracing import STOP_TIMEOUT_S, Tracing, is_wanted, start_tracing
from service.domain import AdScore, PairStatus, StageTimes
from service.request_record import RequestRecord

COLLECTOR = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT_ID = "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, False),
        ({COLLECTOR: ""}, False),
        ({COLLECTOR: "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
        ({COLLECTOR: "http://collector:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({COLLECTOR: "http://collector:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_traces_are_made_where_the_standard_variables_name_a_collector(
    environ: Mapping[str, str], wanted: bool
) -> None:
    assert is_wanted(environ) is wanted


def test_nothing_is_imported_where_nobody_asked_for_traces() -> None:
    code = (
        "import sys, service.app\n"
        "from service.api.tracing import start_tracing\n"
        "print(start_tracing({}, '1', float))\n"
        "print([name for name in sys.modules if 'opentelemetry.sdk' in name or 'otlp' in name])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["None", "[]"]


def test_traces_that_are_not_installed_are_missed_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace.export", None)
    assert start_tracing({COLLECTOR: "http://collector:4318"}, "1", float) is None
    assert "pip install" in caplog.text


class Traced:
    """Spans of one record, as an exporter gets them."""

    def __init__(self, record: RequestRecord) -> None:
        trace = pytest.importorskip("opentelemetry.sdk.trace.export")
        memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
        exporter = memory.InMemorySpanExporter()
        processor = trace.SimpleSpanProcessor(exporter)
        Tracing(processor, {}, now_s=lambda: 11.0, wall_ns=lambda: 1_000_000_000_000)(record)
        self.spans: list[Any] = list(exporter.get_finished_spans())
        self.record = record

    def named(self, name: str) -> Any:  # noqa: ANN401  # the SDK's own type, an extra
        [span] = [span for span in self.spans if span.name == name]
        return span


def scored(**fields: Any) -> RequestRecord:  # noqa: ANN401  # any of its fields
    scores = (
        AdScore("a", 0.5, PairStatus.OK, truncated=False),
        AdScore("b", 0.5, PairStatus.CACHED, truncated=False),
        AdScore("c", None, PairStatus.DEADLINE, truncated=False),
    )
    known = {
        "headers": {},
        "request_id": "auction-7",
        "n_ads": 3,
        "timeout_s": 0.5,
        "times": StageTimes(0.125, 0.25, 0.5, 0.875),
        "scores": scores,
        "computed_tokens": 40,
        "outcome": "partial",
        "duration_s": 1.0,
    }
    return RequestRecord("/v1/score", 10.0, **{**known, **fields})


def test_a_request_and_its_stages_are_spans_with_the_recorded_times() -> None:
    traced = Traced(scored())
    request = traced.named("POST /v1/score")
    assert (request.start_time, request.end_time) == (999_000_000_000, 1_000_000_000_000)
    assert request.kind.name == "SERVER"
    ends = [(span.name, span.start_time / 1e9, span.end_time / 1e9) for span in traced.spans[:3]]
    assert ends == [
        ("encode", 999.0, 999.125),
        ("queue", 999.125, 999.375),
        ("inference", 999.375, 999.875),
    ]
    assert {span.parent.span_id for span in traced.spans[:3]} == {request.context.span_id}


def test_spans_say_what_became_of_the_pairs_and_what_was_computed() -> None:
    traced = Traced(scored())
    request = traced.named("POST /v1/score").attributes
    assert request["adrel.outcome"] == "partial"
    assert request["adrel.request_id"] == "auction-7"
    assert (request["adrel.pairs.ok"], request["adrel.pairs.deadline"]) == (1, 1)
    assert "error.type" not in request
    assert dict(traced.named("inference").attributes) == {"adrel.pairs": 1, "adrel.tokens": 40}


@pytest.mark.parametrize(
    ("outcome", "status"), [("inference_failed", "ERROR"), ("queue_full", "UNSET"), ("ok", "UNSET")]
)
def test_only_a_fault_of_ours_is_an_error(outcome: str, status: str) -> None:
    traced = Traced(scored(outcome=outcome, times=None, scores=()))
    [span] = traced.spans
    assert span.status.status_code.name == status
    assert span.attributes.get("error.type", "ok") == outcome


def test_the_callers_trace_goes_on_and_the_log_can_name_it() -> None:
    traced = Traced(scored(headers={"traceparent": f"00-{TRACE_ID}-{PARENT_ID}-01"}))
    request = traced.named("POST /v1/score")
    assert f"{request.context.trace_id:032x}" == traced.record.trace_id == TRACE_ID
    assert f"{request.parent.span_id:016x}" == PARENT_ID


def test_a_caller_that_does_not_sample_gets_no_spans() -> None:
    traced = Traced(scored(headers={"traceparent": f"00-{TRACE_ID}-{PARENT_ID}-00"}))
    assert traced.spans == []
    assert traced.record.trace_id == TRACE_ID


A_REQUEST_AND_A_STOP = """
import asyncio, os, time
from service.api.tracing import start_tracing
from tests.service.api.test_tracing import scored

tracing = start_tracing(os.environ, "1", time.monotonic)
started_s = time.monotonic()
for _ in range(3000):  # more than the SDK keeps
    tracing(scored())
asyncio.run(tracing.stop())
print(time.monotonic() - started_s)
"""


def test_a_collector_that_hangs_delays_neither_a_request_nor_the_stop() -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # connections wait there for ever
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        environ = {**os.environ, COLLECTOR: url, "OTEL_EXPORTER_OTLP_TIMEOUT": "60"}
        # A process of its own: the exporter's threads outlive the stop.
        command = [sys.executable, "-c", A_REQUEST_AND_A_STOP]
        ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environ)
    assert float(ran.stdout) < STOP_TIMEOUT_S + 20  # loose; without a limit: 30


@pytest.mark.anyio
async def test_listeners_hear_of_a_request_in_order_and_only_once_the_loop_turns() -> None:
    heard: list[str] = []
    told = once_answered(lambda _: heard.append("traces"), lambda _: heard.append("log"))
    told(scored())
    assert heard == []
    await asyncio.sleep(0)
    assert heard == ["traces", "log"]
