"""OpenTelemetry spans of requests, where the standard variables ask for them.

The spans are made from the recorded times once the answer has left, and exported by the SDK's own
thread, so that no request waits for a trace. The SDK is not imported otherwise.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from service.api.error_handlers import STATUS_OF
from service.domain import PairStatus
from service.request_record import RequestRecord

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

logger = logging.getLogger(__name__)

SERVICE_NAME = "adrel"
STOP_TIMEOUT_S = 2.0
"""To export what is left at the end; a dead collector must not hold up the stop."""

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
OUR_FAULTS = frozenset(error.code for error, status in STATUS_OF.items() if status >= 500)


def is_wanted(environ: Mapping[str, str]) -> bool:
    """Whether the standard variables name a collector and do not switch traces off.

    Source: opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if environ.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower() == "none":
        return False
    return any(environ.get(name, "").strip() for name in ENDPOINTS)


def start_tracing(
    environ: Mapping[str, str], release: str, now_s: Callable[[], float]
) -> Tracing | None:
    """What tells the collector of each request; None where nobody asked for it.

    Where it was asked for and OpenTelemetry is not installed, the log says so: a variable that is
    set for a whole cluster must not keep a service from scoring.

    Args:
        environ: The process environment; the SDK and its exporter read the rest of it themselves.
        release: Of the product.
        now_s: The clock of the records.
    """
    if not is_wanted(environ):
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        logger.warning("traces are asked for, but not installed: pip install '.[otel]'")
        return None
    names_itself = "OTEL_SERVICE_NAME" in environ or "service.name=" in environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    resource = {"service.version": release} | (
        {} if names_itself else {"service.name": SERVICE_NAME}
    )
    return Tracing(BatchSpanProcessor(OTLPSpanExporter()), resource, now_s)


class Tracing:
    """Makes the spans of a request that has ended; the sampler is the environment's."""

    def __init__(
        self,
        processor: SpanProcessor,
        resource: Mapping[str, str],
        now_s: Callable[[], float],
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Set up.

        Args:
            processor: Takes the ended spans.
            resource: Attributes of the service.
            now_s: The clock of the records.
            wall_ns: Nanoseconds since 1970, which is what spans are told in.
        """
        from opentelemetry import trace
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = TracerProvider(resource=Resource.create(resource), shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("adrel")
        self._caller_of = TraceContextTextMapPropagator().extract
        self._trace = trace
        self._now_s = now_s
        self._wall_ns = wall_ns

    def __call__(self, record: RequestRecord) -> None:
        """Make the spans, and note the trace's id in the record."""
        trace, ahead_ns = self._trace, self._wall_ns() - _ns(self._now_s())
        span = self._tracer.start_span(
            f"POST {record.route}",
            context=self._caller_of(record.headers),
            kind=trace.SpanKind.SERVER,
            start_time=_ns(record.started_s) + ahead_ns,
        )
        record.trace_id = f"{span.get_span_context().trace_id:032x}"
        if span.is_recording():
            span.set_attributes(_attributes(record))
            if record.outcome in OUR_FAULTS:
                span.set_status(trace.Status(trace.StatusCode.ERROR, record.outcome))
            context = trace.set_span_in_context(span)
            for stage, start_s, end_s in _stages(record):
                child = self._tracer.start_span(
                    stage, context=context, start_time=_ns(start_s) + ahead_ns
                )
                if stage == "inference":
                    child.set_attributes(_computed(record))
                child.end(_ns(end_s) + ahead_ns)
        span.end(_ns(record.started_s + record.duration_s) + ahead_ns)

    async def stop(self) -> None:
        """Export what is left, as far as that goes in `STOP_TIMEOUT_S`."""
        ending = threading.Thread(target=self._provider.shutdown, name="traces", daemon=True)
        ending.start()
        await asyncio.to_thread(ending.join, STOP_TIMEOUT_S)


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)


def _attributes(record: RequestRecord) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "http.request.method": "POST",
        "http.route": record.route,
        "adrel.outcome": record.outcome,
        "adrel.pairs": record.n_ads,
        "adrel.request_id": record.request_id,
    }
    if record.outcome not in ("ok", "partial"):
        attributes["error.type"] = record.outcome
    if record.n_ads:
        attributes["adrel.priority"] = record.priority.name.lower()
        attributes["adrel.timeout_ms"] = record.timeout_s * 1000
    if record.times is not None:
        attributes["adrel.slack_ms"] = record.slack_s * 1000
        for ad in record.scores:
            name = f"adrel.pairs.{ad.status}"
            attributes[name] = attributes.get(name, 0) + 1
    return attributes


def _computed(record: RequestRecord) -> dict[str, int]:
    return {
        "adrel.pairs": sum(ad.status is PairStatus.OK for ad in record.scores),
        "adrel.tokens": record.computed_tokens,
    }


def _stages(record: RequestRecord) -> Iterator[tuple[str, float, float]]:
    """Each stage that took any time: its name, start and end on the records' clock."""
    if record.times is None:
        return
    start_s = record.started_s
    for stage, seconds in (
        ("encode", record.times.encode_s),
        ("queue", record.times.queue_s),
        ("inference", record.times.inference_s),
    ):
        if seconds > 0:
            yield stage, start_s, start_s + seconds
        start_s += seconds
