from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import httpx
import pytest

from service.client import Ad, AdrelClient
from service.client.affinity import AFFINITY_HEADER
from tests.deploy.clients.stand_in_server import Reply, StandIn, scored, standing_in
from tests.deploy.nginx.running_nginx import proxying
from tests.end_to_end.running_service import running

QUERIES = [f"running shoes size {size}" for size in range(90)]
ADS = [Ad("A", text="marathon shoes")]
AMPLE_MS = 30_000


def ask(url: str, queries: Iterable[str]) -> None:
    with AdrelClient(url, timeout_ms=AMPLE_MS, retry=None) as adrel:
        for query in queries:
            adrel.score(query, ADS)


def homes(replicas: Sequence[StandIn]) -> dict[str, set[int]]:
    """The replicas that each query came to."""
    found: dict[str, set[int]] = {}
    for index, replica in enumerate(replicas):
        for asked in replica.asked:
            found.setdefault(asked["query"], set()).add(index)
        replica.asked.clear()
    return found


def test_the_same_query_comes_to_the_same_replica(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        replicas = [stack.enter_context(standing_in()) for _ in range(3)]
        url = stack.enter_context(proxying(tmp_path, [replica.url for replica in replicas]))
        for _ in range(3):
            ask(url, QUERIES)
        found = homes(replicas)
    assert len(found) == len(QUERIES)
    assert all(len(indices) == 1 for indices in found.values())
    shares = Counter(index for [index] in found.values())
    assert min(shares[index] for index in range(3)) >= len(QUERIES) / 9


def test_a_replica_s_death_moves_its_own_queries_only_and_no_call_fails(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        replicas = [stack.enter_context(standing_in()) for _ in range(2)]
        dying = contextlib.ExitStack()
        replicas.append(dying.enter_context(standing_in()))
        url = stack.enter_context(proxying(tmp_path, [replica.url for replica in replicas]))
        with dying:
            ask(url, QUERIES)
            before = homes(replicas)
        ask(url, QUERIES)
        after = homes(replicas)
    orphans = {query for query, indices in before.items() if indices == {2}}
    assert orphans
    for query in QUERIES:
        assert (after[query] == before[query]) is (query not in orphans)
    assert {index for query in orphans for index in after[query]} == {0, 1}


def test_requests_without_a_key_are_spread_over_all_replicas(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        replicas = [stack.enter_context(standing_in()) for _ in range(3)]
        url = stack.enter_context(proxying(tmp_path, [replica.url for replica in replicas]))
        client = stack.enter_context(httpx.Client(base_url=url))
        for _ in range(60):
            client.post("/v1/score", json={"query": "shoes", "ads": []})
    assert all(len(replica.asked) >= 5 for replica in replicas)


def test_connections_to_the_replicas_are_kept(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        replicas = [stack.enter_context(standing_in()) for _ in range(3)]
        url = stack.enter_context(proxying(tmp_path, [replica.url for replica in replicas]))
        ask(url, QUERIES)
    assert [replica.n_connections for replica in replicas] == [1, 1, 1]
    assert not [one for replica in replicas for one in replica.headers if "connection" in one]


@pytest.mark.parametrize("status", [200, 429, 503])
def test_headers_pass_both_ways(tmp_path: Path, status: int) -> None:
    sent = {
        "X-Request-Id": "auction-7",
        "X-Request-Timeout-Ms": "30",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "Authorization": "Bearer key",
        AFFINITY_HEADER: "7f43e6c7c965c8c8",
    }
    got = {"X-Request-Id": "auction-7", "Server-Timing": "total;dur=1", "Retry-After": "1"}
    with contextlib.ExitStack() as stack:
        replica = stack.enter_context(standing_in(Reply(status, b"{}", got)))
        url = stack.enter_context(proxying(tmp_path, [replica.url]))
        answer = httpx.post(f"{url}/v1/score", json={"query": "shoes", "ads": []}, headers=sent)
    [received] = replica.headers
    assert answer.status_code == status
    assert got.items() <= {name: answer.headers.get(name) for name in got}.items()
    assert {name: received[name.lower()] for name in sent} == sent
    assert received["host"] == url.removeprefix("http://")


def test_a_body_as_large_as_the_service_takes_passes(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        replica = stack.enter_context(standing_in(scored, scored))
        url = stack.enter_context(proxying(tmp_path, [replica.url]))
        fitting = b'{"ads": [], "query": "%s"}' % (b"x" * (2**20 - 24))
        assert len(fitting) == 2**20
        assert httpx.post(f"{url}/v1/score", content=fitting).status_code == 200
        assert httpx.post(f"{url}/v1/score", content=fitting + b" ").status_code == 413
    assert len(replica.asked) == 1


def test_two_services_compute_a_pair_once_between_them(
    tmp_path: Path, tiny_bundle_int8: Path
) -> None:
    with contextlib.ExitStack() as stack:
        services = [stack.enter_context(running(tiny_bundle_int8)) for _ in range(2)]
        url = stack.enter_context(proxying(tmp_path, [service.url for service in services]))
        for _ in range(3):
            ask(url, QUERIES[:20])
        misses = [
            service.metric('adrel_cache_requests_total{result="miss"}') for service in services
        ]
    assert sum(misses) == 20
    assert all(misses)
