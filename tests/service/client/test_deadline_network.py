from __future__ import annotations

import httpcore
import pytest

from service.client.deadline import Deadline
from service.client.deadline_network import DeadlineBackend, until
from tests.service.client.slow_network import SlowNetwork
from tests.service.client.stand_ins import FakeTime


def both_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(0, 0, 0, "", ("::1", 80, 0, 0)), (0, 0, 0, "", ("127.0.0.1", 80))]
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: found)


def test_the_next_address_of_a_host_is_tried_when_one_refuses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both_addresses(monkeypatch)
    network = SlowNetwork(FakeTime())
    network.refusing = {"::1"}
    with until(Deadline.after(100, network.time.clock)):
        DeadlineBackend(network).connect_tcp("adrel.test", 80)
    assert network.connections == ["::1", "127.0.0.1"]


def test_all_addresses_of_a_host_share_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    both_addresses(monkeypatch)
    network = SlowNetwork(FakeTime(), connect_s=0.06)
    network.refusing = {"::1", "127.0.0.1"}
    started_s = network.time.now_s
    with until(Deadline.after(100, network.time.clock)), pytest.raises(httpcore.ConnectTimeout):
        DeadlineBackend(network).connect_tcp("adrel.test", 80)
    assert network.time.now_s == pytest.approx(started_s + 0.1)
