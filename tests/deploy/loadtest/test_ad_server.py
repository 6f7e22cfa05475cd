from __future__ import annotations

import json
import subprocess
import sys

from tests.deploy.repository import ROOT

# A process of its own, since importing locust patches the standard library.
SENT_LATE = """
import json, time
from contextlib import contextmanager
from types import SimpleNamespace
from deploy.loadtest.ad_server import AdServer, run

class Client:
    @contextmanager
    def post(self, route, **_):
        self.response = SimpleNamespace(
            status_code=200,
            content=b'{"scores": [{"id": "a", "status": "ok", "score": 0.5}]}',
            request_meta={"response_time": 5.0},
            success=lambda: None,
            failure=lambda text: None,
        )
        yield self.response

user = object.__new__(AdServer)
user.client, user._headers, user._patience_ms = Client(), {}, 155.0
latencies_ms = []
for late_s in (0.0, 1.0):
    user._ask({"ads": [{"id": "a"}]}, time.perf_counter() - late_s)
    latencies_ms.append(user.client.response.request_meta["response_time"])
print(json.dumps([latencies_ms, run.totals.take()]))
"""


def test_a_request_that_was_sent_late_has_waited_since_it_was_due() -> None:
    told = subprocess.run(
        [sys.executable, "-c", SENT_LATE], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    (prompt_ms, late_ms), pairs = json.loads(told)
    assert 5 <= prompt_ms < 100
    assert 1005 <= late_ms < 1100
    assert pairs["good"] == pairs["late"] == 1
