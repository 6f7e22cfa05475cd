"""From the stop signal to the exit: who is answered, who is sent away, and how long it takes."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import httpx
import pytest

from tests.end_to_end.running_service import RunningService, running
from tests.end_to_end.test_admin_port import admin_url
from tests.end_to_end.test_serving import ads

DEADLINE_S = 30
BODY = {"query": "red", "ads": ads("shoe")}


def stop(service: RunningService) -> None:
    """Send the signal, and wait until the service shows that it has come."""
    service.process.send_signal(signal.SIGTERM)
    stop_s = time.monotonic() + DEADLINE_S
    while httpx.get(f"{service.url}/readyz").status_code != 503:
        assert time.monotonic() < stop_s


def test_until_nobody_sends_any_more_requests_are_taken_and_answered_but_it_is_not_ready(
    tiny_bundle_int8: Path,
) -> None:
    delay_s = 1.5
    arguments = ("--shutdown-delay-s", str(delay_s), "--admin-port", "0")
    with running(tiny_bundle_int8, *arguments) as stopping:
        assert "connection" not in stopping.score(BODY).headers
        began_s = time.monotonic()
        stop(stopping)
        answered = 0
        while time.monotonic() < began_s + delay_s - 0.5:
            answer = httpx.post(f"{stopping.url}/v1/score", json=BODY)
            assert answer.status_code == 200
            assert answer.headers["connection"] == "close"
            answered += 1
        assert answered > 0
        kept = stopping.score(BODY)  # on the connection from before the signal
        assert (kept.status_code, kept.headers["connection"]) == (200, "close")
        assert httpx.get(f"{admin_url(stopping)}/readyz").status_code == 503
        assert "adrel_ready 0.0" in httpx.get(f"{admin_url(stopping)}/metrics").text
        assert stopping.process.wait(DEADLINE_S) == 0
        assert time.monotonic() - began_s >= delay_s
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{stopping.url}/livez")
        assert not [entry for entry in stopping.log if entry["level"] in ("warning", "error")]


@pytest.mark.parametrize("again", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(again: signal.Signals, tiny_bundle_int8: Path) -> None:
    with running(tiny_bundle_int8, "--shutdown-delay-s", "60") as stopping:
        stop(stopping)
        stopping.process.send_signal(again)
        assert stopping.process.wait(DEADLINE_S) == 128 + again
