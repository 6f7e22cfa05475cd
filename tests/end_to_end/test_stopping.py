"""From the stop signal to the exit: who is answered, who is sent away, and how long it takes."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import httpx
import pytest

from tests.end_to_end.running_service import EACH_ITS_OWN, RunningService, running
from tests.end_to_end.test_admin_port import admin_url
from tests.end_to_end.test_serving import ads
from tests.waiting import until

DEADLINE_S = 30
BODY = {"query": "red", "ads": ads("shoe")}


def stop(service: RunningService) -> None:
    """Send the signal, and wait until the service shows that it has come.

    It is unready from the signal on, and ends connections from uvicorn's next look at its flag on.
    """
    service.process.send_signal(signal.SIGTERM)
    with httpx.Client(base_url=service.url, timeout=DEADLINE_S, limits=EACH_ITS_OWN) as client:
        until(lambda: _shown(client.get("/readyz")) == (503, "close"))


def _shown(answer: httpx.Response) -> tuple[int, str | None]:
    return answer.status_code, answer.headers.get("connection")


def test_until_nobody_sends_any_more_requests_are_taken_and_answered_but_it_is_not_ready(
    tiny_bundle_int8: Path,
) -> None:
    arguments = ("--shutdown-delay-s", "60", "--admin-port", "0")
    with (
        running(tiny_bundle_int8, *arguments) as stopping,
        httpx.Client(base_url=stopping.url, timeout=DEADLINE_S, limits=EACH_ITS_OWN) as client,
        httpx.Client(base_url=admin_url(stopping), timeout=DEADLINE_S) as admin,
    ):
        assert "connection" not in stopping.score(BODY).headers
        stop(stopping)
        for _ in range(5):
            answer = client.post("/v1/score", json=BODY)
            assert (answer.status_code, answer.headers["connection"]) == (200, "close")
        kept = stopping.score(BODY)  # on the connection from before the signal
        assert (kept.status_code, kept.headers["connection"]) == (200, "close")
        assert admin.get("/readyz").status_code == 503
        assert "adrel_ready 0.0" in admin.get("/metrics").text
        assert not [entry for entry in stopping.log if entry["level"] in ("warning", "error")]


def test_when_the_delay_is_over_it_ends(tiny_bundle_int8: Path) -> None:
    delay_s = 0.5
    with running(tiny_bundle_int8, "--shutdown-delay-s", str(delay_s)) as stopping:
        began_s = time.monotonic()
        stopping.process.send_signal(signal.SIGTERM)
        assert stopping.process.wait(DEADLINE_S) == 0
        assert time.monotonic() - began_s >= delay_s
        with pytest.raises(httpx.ConnectError):
            stopping.client.get("/livez")
    assert not [entry for entry in stopping.log if entry["level"] in ("warning", "error")]


@pytest.mark.parametrize("again", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(again: signal.Signals, tiny_bundle_int8: Path) -> None:
    with running(tiny_bundle_int8, "--shutdown-delay-s", "60") as stopping:
        stop(stopping)
        stopping.process.send_signal(again)
        assert stopping.process.wait(DEADLINE_S) == 128 + again
