"""Where a request's time went, as a header that browsers, proxies and load tools read.

Source: www.w3.org/TR/server-timing, section 3.
"""

from __future__ import annotations

from fastapi import Response

from service.domain import StageTimes
from service.request_record import RequestRecord

SERVER_TIMING_HEADER = "Server-Timing"


def server_timing(times: StageTimes) -> str:
    """The header's value: each stage and the total, in milliseconds."""
    return (
        f"encode;dur={times.encode_s * 1000:.3f}, "
        f"queue;dur={times.queue_s * 1000:.3f}, "
        f"inference;dur={times.inference_s * 1000:.3f}, "
        f"total;dur={times.total_s * 1000:.3f}"
    )


def with_server_timing(response: Response, record: RequestRecord) -> Response:
    """The response, with the header if anything was scored for it."""
    if record.times is not None:
        response.headers[SERVER_TIMING_HEADER] = server_timing(record.times)
    return response
