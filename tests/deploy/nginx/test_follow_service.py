"""The script with real servers on several loopback addresses, and a stand-in for the resolver."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.nginx.loopback import free_port, on_loopback, wait_until_open
from service.client import Ad, AdrelClient
from tests.deploy.clients.stand_in_server import StandIn, standing_in
from tests.deploy.nginx.running_nginx import program
from tests.deploy.repository import DEPLOY

SCRIPT = DEPLOY / "nginx" / "follow_service.sh"
ADDRESSES = ("127.0.0.11", "127.0.0.12", "127.0.0.13")
TIMEOUT_S = 30
ADS = [Ad("A", text="marathon shoes")]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs all of 127.0.0.0/8")


@dataclass
class Following:
    """The script at work; `name_has` decides what its next look-up finds."""

    process: subprocess.Popen[str]
    folder: Path
    port: int

    @property
    def servers(self) -> Path:
        return self.folder / "run" / "servers.conf"

    def name_has(self, addresses: Sequence[str]) -> None:
        set_addresses(self.folder, addresses)

    def asks(self, replicas: Sequence[StandIn]) -> dict[str, int]:
        """Which of them gets which of thirty queries."""
        for replica in replicas:
            replica.asked.clear()
        # A reload closes idle connections, also under a request that is on its way: clients that
        # keep connections try those again.
        with AdrelClient(f"http://127.0.0.1:{self.port}", timeout_ms=TIMEOUT_S * 1000) as adrel:
            for size in range(30):
                adrel.score(f"shoes size {size}", ADS)
        return {
            asked["query"]: index
            for index, replica in enumerate(replicas)
            for asked in replica.asked
        }


def set_addresses(folder: Path, addresses: Sequence[str]) -> None:
    """As getent prints them: three lines for each."""
    kinds = ("STREAM", "DGRAM", "RAW")
    lines = [f"{address:15} {kind}\n" for kind in kinds for address in reversed(addresses)]
    (folder / "addresses.new").write_text("".join(lines), encoding="utf-8")
    (folder / "addresses.new").rename(folder / "addresses")


@contextlib.contextmanager
def following(folder: Path, addresses: Sequence[str], port: int) -> Iterator[Following]:
    tools = folder / "bin"
    tools.mkdir()
    answers = shlex.quote(str(folder / "addresses"))
    for name, command in {"getent": f"cat {answers}", "nginx": f'exec {program()} "$@"'}.items():
        (tools / name).write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
        (tools / name).chmod(0o755)
    listen = free_port()
    (folder / "nginx.conf").write_text(on_loopback(listen, {}), encoding="utf-8")
    environ = {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "NGINX_CONF": str(folder / "nginx.conf"),
        "FOLLOW_S": "0.05",
    }
    set_addresses(folder, addresses)
    with subprocess.Popen(
        ["/bin/sh", str(SCRIPT), "adrel-pods", str(port), str(folder / "run")],
        env=environ,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            if addresses:
                wait_until_open(process, listen)
            yield Following(process, folder, listen)
        finally:
            process.terminate()
            try:
                process.wait(timeout=TIMEOUT_S)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # nginx too, where the script left it


def becomes(condition: Callable[[], bool]) -> bool:
    """Whether it does in time; each look costs some milliseconds."""
    stop_s = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > stop_s:
            return False
    return True


@pytest.fixture
def replicas() -> Iterator[list[StandIn]]:
    """Three on one port, as pods are."""
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(standing_in(address=(ADDRESSES[0], 0)))
        port = int(first.url.rpartition(":")[2])
        others = [stack.enter_context(standing_in(address=(host, port))) for host in ADDRESSES[1:]]
        yield [first, *others]


def port_of(replica: StandIn) -> int:
    return int(replica.url.rpartition(":")[2])


def test_all_addresses_of_the_name_are_asked(tmp_path: Path, replicas: list[StandIn]) -> None:
    with following(tmp_path, ADDRESSES, port_of(replicas[0])) as proxy:
        assert set(proxy.asks(replicas).values()) == {0, 1, 2}


def test_a_new_address_is_asked_and_one_that_went_no_more(
    tmp_path: Path, replicas: list[StandIn]
) -> None:
    with following(tmp_path, ADDRESSES[:2], port_of(replicas[0])) as proxy:
        assert set(proxy.asks(replicas).values()) == {0, 1}
        proxy.name_has(ADDRESSES[1:])
        assert becomes(lambda: set(proxy.asks(replicas).values()) == {1, 2})


def test_an_address_that_went_takes_only_its_own_queries_with_it(
    tmp_path: Path, replicas: list[StandIn]
) -> None:
    with following(tmp_path, ADDRESSES, port_of(replicas[0])) as proxy:
        before = proxy.asks(replicas)
        lost_theirs = {query for query in before if before[query] == 2}
        proxy.name_has(ADDRESSES[:2])

        # The old workers of nginx may take calls beside the new ones for some time.
        def only_theirs_moved() -> bool:
            after = proxy.asks(replicas)
            return {query for query in before if before[query] != after[query]} == lost_theirs

        assert becomes(only_theirs_moved)


def test_no_call_fails_while_addresses_change(tmp_path: Path, replicas: list[StandIn]) -> None:
    with following(tmp_path, ADDRESSES[:2], port_of(replicas[0])) as proxy:
        for count in (3, 1, 3, 2):
            proxy.name_has(ADDRESSES[:count])
            wanted = [f"server {address}:{port_of(replicas[0])};" for address in ADDRESSES[:count]]

            def are_asked(wanted: list[str] = wanted) -> bool:
                proxy.asks(replicas)  # raises where a call fails
                return proxy.servers.read_text(encoding="utf-8").splitlines() == wanted

            assert becomes(are_asked)
            proxy.asks(replicas)


def test_a_name_that_cannot_be_looked_up_changes_nothing(
    tmp_path: Path, replicas: list[StandIn]
) -> None:
    with following(tmp_path, ADDRESSES, port_of(replicas[0])) as proxy:
        before = proxy.servers.stat().st_mtime_ns
        proxy.name_has([])
        looked = proxy.folder / "run" / "servers.new"
        assert becomes(lambda: looked.exists() and looked.stat().st_size == 0)
        assert set(proxy.asks(replicas).values()) == {0, 1, 2}
        assert proxy.servers.stat().st_mtime_ns == before


def test_it_waits_for_the_first_address(tmp_path: Path, replicas: list[StandIn]) -> None:
    with following(tmp_path, [], port_of(replicas[0])) as proxy:
        assert becomes((proxy.folder / "run" / "servers.new").exists)
        assert proxy.process.poll() is None
        proxy.name_has(ADDRESSES[:1])
        wait_until_open(proxy.process, proxy.port)
        assert set(proxy.asks(replicas).values()) == {0}


def test_a_stop_signal_ends_it_and_nginx(tmp_path: Path, replicas: list[StandIn]) -> None:
    with following(tmp_path, ADDRESSES, port_of(replicas[0])) as proxy:
        proxy.process.terminate()
        assert proxy.process.wait(timeout=TIMEOUT_S) == 0
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", proxy.port)) != 0


def test_it_ends_when_nginx_does(tmp_path: Path, replicas: list[StandIn]) -> None:
    with following(tmp_path, ADDRESSES, port_of(replicas[0])) as proxy:
        pid = int((proxy.folder / "run" / "nginx.pid").read_text(encoding="ascii"))
        os.kill(pid, signal.SIGTERM)
        proxy.process.wait(timeout=TIMEOUT_S)  # else a pod without a proxy would seem to run
