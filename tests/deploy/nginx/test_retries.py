"""What nginx sends a second time: only what was sent to nobody, and only at once."""

from __future__ import annotations

import contextlib
import itertools
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from service.client.affinity import AFFINITY_HEADER
from tests.deploy.clients.stand_in_server import Behaviour, Closes, Hangs, refused, standing_in
from tests.deploy.nginx.running_nginx import proxying

BODY = {"query": "shoes", "ads": []}
READ_TIMEOUT = "proxy_read_timeout 61000ms;"
CONNECT_TIMEOUT = "proxy_connect_timeout 10ms;"
RETRY_TIMEOUT = "proxy_next_upstream_timeout 20ms;"
MAX_LATE_S = 4  # nginx' own patience is 60 s; loose: the machine's neighbours have a say


@contextlib.contextmanager
def out_of_reach() -> Iterator[str]:
    """An address where a connection is neither made nor refused."""
    with contextlib.ExitStack() as sockets:
        full = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):  # once its backlog is full, Linux leaves new ones without an answer
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        yield f"127.0.0.1:{full.getsockname()[1]}"


def statuses(client: httpx.Client) -> Iterator[int]:
    """Of one request after another, each with a key of its own."""
    for number in itertools.count():
        headers = {AFFINITY_HEADER: str(number)}
        yield client.post("/v1/score", json=BODY, headers=headers).status_code


@pytest.mark.parametrize(
    ("behaviour", "status"),
    [
        (Closes(), 502),
        (Hangs(), 504),
        (refused(503, "not_ready"), 503),
        (refused(429, "queue_full"), 429),
    ],
)
def test_what_was_sent_is_sent_to_nobody_else(
    tmp_path: Path, behaviour: Behaviour, status: int
) -> None:
    with contextlib.ExitStack() as stack:
        replicas = [stack.enter_context(standing_in(behaviour)) for _ in range(3)]
        servers = [replica.url for replica in replicas]
        changes = {READ_TIMEOUT: "proxy_read_timeout 50ms;"}
        url = stack.enter_context(proxying(tmp_path, servers, changes))
        answer = httpx.post(f"{url}/v1/score", json=BODY)
    assert answer.status_code == status
    assert sum(len(replica.asked) for replica in replicas) == 1


def test_a_replica_out_of_reach_costs_no_request_its_answer(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        replica = stack.enter_context(standing_in())
        gone = stack.enter_context(out_of_reach())
        # Ample, since this machine may be slow to wake nginx.
        changes = {RETRY_TIMEOUT: "proxy_next_upstream_timeout 9s;"}
        url = stack.enter_context(proxying(tmp_path, [replica.url, gone], changes))
        client = stack.enter_context(httpx.Client(base_url=url))
        assert set(itertools.islice(statuses(client), 40)) == {200}
    assert len(replica.asked) == 40


def test_a_request_goes_to_no_second_replica_when_its_time_is_over(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        replica = stack.enter_context(standing_in())
        gone = stack.enter_context(out_of_reach())
        changes = {
            CONNECT_TIMEOUT: "proxy_connect_timeout 60ms;"
        }  # over proxy_next_upstream_timeout
        url = stack.enter_context(proxying(tmp_path, [replica.url, gone], changes))
        client = stack.enter_context(httpx.Client(base_url=url))
        before = list(itertools.takewhile(lambda status: status == 200, statuses(client)))
    assert len(replica.asked) == len(before)  # the one that met the other replica came to nobody


def test_nobody_in_reach_is_known_soon(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        gone = [stack.enter_context(out_of_reach()) for _ in range(3)]
        url = stack.enter_context(proxying(tmp_path, gone))
        began_s = time.monotonic()
        answer = httpx.post(f"{url}/v1/score", json=BODY)
    assert answer.status_code == 504
    assert time.monotonic() - began_s < MAX_LATE_S
