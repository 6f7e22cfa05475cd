"""Callers that die, hold connections open, or never read: a cost to nobody else."""

from __future__ import annotations

import json
import socket
import struct
import time
from pathlib import Path

import httpx

from tests.end_to_end.running_service import RunningService, running
from tests.end_to_end.test_serving import ads

N_PEERS = 20
ANSWERED_WITHIN_S = 10  # of a machine that may be busy; alone it is milliseconds
MORE_BYTES = 30 * 2**20
RESET_AT_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER of 0 s


def connect(service: RunningService) -> socket.socket:
    url = httpx.URL(service.url)
    peer = socket.create_connection((url.host, url.port or 0), timeout=30)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
    return peer


def request(n_ads: int, word: str) -> bytes:
    body = json.dumps({"query": "red", "ads": ads(*[f"{word} {i}" for i in range(n_ads)])}).encode()
    head = (
        "POST /v1/score HTTP/1.1\r\nHost: adrel\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def test_callers_that_die_or_are_silent_or_never_read_cost_nobody_else_anything(
    tiny_bundle_int8: Path,
) -> None:
    with running(tiny_bundle_int8, "--cache-bytes", "0") as service:
        assert service.score({"query": "red", "ads": ads("shoe")}).status_code == 200
        before_bytes = service.metric("process_resident_memory_bytes")
        peers = []
        for number in range(N_PEERS):
            amid_the_body, after_asking = connect(service), connect(service)
            amid_the_body.sendall(request(20, f"amid {number}")[:-30])
            after_asking.sendall(request(20, f"after {number}"))
            amid_the_body.close()
            after_asking.close()
            peers.append(connect(service))  # half-open: never says anything
            never_reads = connect(service)
            never_reads.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            never_reads.sendall(request(200, f"unread {number}") * 2)
            peers.append(never_reads)
            asked_s = time.monotonic()
            answer = service.score({"query": "blue", "ads": ads(f"bag {number}")})
            assert answer.status_code == 200
            assert time.monotonic() - asked_s < ANSWERED_WITHIN_S
        service.reaches("adrel_requests_in_flight", lambda n: n == 0)
        assert service.metric("adrel_connections") == 1 + len(peers)
        assert service.metric("process_resident_memory_bytes") - before_bytes < MORE_BYTES
        for peer in peers:
            peer.close()
        service.reaches("adrel_connections", lambda n: n == 1)
        assert service.metric("adrel_queue_pairs") == 0
        assert not [entry for entry in service.log if entry["level"] == "error"]
        assert service.client.get("/readyz").status_code == 200
