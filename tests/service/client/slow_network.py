"""Sockets whose every operation takes time, in a time that a test makes pass."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import httpcore

from tests.service.client.stand_ins import FakeTime, answer_to


class SlowStream(httpcore.NetworkStream):
    """Takes some time for each operation and answers piece by piece."""

    def __init__(self, network: SlowNetwork) -> None:
        self._network = network
        self._sent = b""
        self._answer = b""

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._network.spend(self._network.write_s, timeout, httpcore.WriteTimeout)
        self._sent += buffer

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        if self._sent:
            self._answer, self._sent = self._network.answer(self._sent), b""
        self._network.spend(self._network.read_s, timeout, httpcore.ReadTimeout)
        piece = self._answer[: self._network.piece_bytes]
        self._answer = self._answer[len(piece) :]
        return piece

    def close(self) -> None:
        self._network.closed += 1

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401  # as httpcore has it
        return self._network.hung_up if info == "is_readable" else None


class SlowNetwork(httpcore.NetworkBackend):
    def __init__(
        self, time: FakeTime, connect_s: float = 0, write_s: float = 0, read_s: float = 0
    ) -> None:
        self.time = time
        self.connect_s, self.write_s, self.read_s = connect_s, write_s, read_s
        self.piece_bytes = 100_000
        self.answer: Callable[[bytes], bytes] = answer_over_http
        self.connections: list[str] = []
        self.closed = 0
        self.hung_up = False
        self.refusing: set[str] = set()

    def spend(self, takes_s: float, timeout_s: float | None, late: type[Exception]) -> None:
        assert timeout_s is not None
        assert timeout_s > 0
        self.time.now_s += min(takes_s, timeout_s)
        if takes_s >= timeout_s:
            raise late("late")

    def connect_tcp(
        self,
        host: str,
        port: int,  # noqa: ARG002  # here and below: as httpcore has it
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        self.connections.append(host)
        self.hung_up = False  # this one is open
        self.spend(self.connect_s, timeout, httpcore.ConnectTimeout)
        if host in self.refusing:
            raise httpcore.ConnectError(f"{host} refused")
        return SlowStream(self)


def answer_over_http(sent: bytes) -> bytes:
    body = json.dumps(answer_to(json.loads(sent.split(b"\r\n\r\n", 1)[1]))).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
