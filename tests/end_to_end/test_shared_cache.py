"""Replicas that share scores in a real redis, and what becomes of them when it fails."""

from __future__ import annotations

import itertools
import signal
import statistics
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from service.shared_cache.breaker import MAX_FAILED, STEADY_LOOKUPS
from tests.bundle_variants import of_another_version
from tests.end_to_end.running_redis import DEADLINE_S, RunningRedis, nonsense_at, redis_at
from tests.end_to_end.running_service import RunningService, running
from tests.waiting import until

N_ADS = 6
TTL_S = 500
WAIT_MS = 200  # for redis: generous, since the tests share their cores
SHARE_OF_TIMEOUT_MS = 1000  # a tenth of the 10 s that these auctions have: never waited longer
CALLS = itertools.count()


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRedis]:
    with redis_at(tmp_path_factory.mktemp("redis") / "s") as running_redis:
        yield running_redis


@contextmanager
def replica_of(
    bundle: Path, redis: RunningRedis, *arguments: str, **variables: str
) -> Iterator[RunningService]:
    wanted = ["--redis-url", redis.url, "--redis-timeout-ms", str(WAIT_MS)]
    with running(bundle, *wanted, *arguments, **variables) as service:
        yield service


@pytest.fixture(scope="module")
def replica(tiny_bundle_fp32: Path, redis: RunningRedis) -> Iterator[RunningService]:
    with replica_of(tiny_bundle_fp32, redis, "--redis-ttl-s", str(TTL_S)) as service:
        in_use(service)
        yield service


@pytest.fixture(scope="module")
def bare(tiny_bundle_fp32: Path, redis: RunningRedis) -> Iterator[RunningService]:
    """A replica that keeps nothing itself."""
    with replica_of(tiny_bundle_fp32, redis, "--cache-bytes", "0") as service:
        in_use(service)
        yield service


@pytest.fixture
def steady(replica: RunningService, redis: RunningRedis) -> Iterator[RunningService]:
    """Redis is there again afterwards, and has been for so long that pauses are short."""
    yield replica
    redis.kill()
    redis.start()
    in_use(replica)
    for _ in range(STEADY_LOOKUPS + 1):
        score(replica)


def in_use(service: RunningService) -> None:
    service.reaches('adrel_shared_cache_breaker{state="closed"}', lambda value: value == 1)


def looked_up(service: RunningService, result: str) -> float:
    return service.metric(f'adrel_shared_cache_requests_total{{result="{result}"}}')


def wrote(result: str) -> str:
    return f'adrel_shared_cache_writes_total{{result="{result}"}}'


def body(number: int) -> dict[str, Any]:
    texts = (f"shoe bag {number} {i}" for i in range(N_ADS))
    ads = [{"id": str(i), "text": text} for i, text in enumerate(texts)]
    return {"query": "red shoe", "ads": ads, "timeout_ms": 10_000}


def score(service: RunningService, number: int | None = None) -> dict[str, Any]:
    """An auction's answer; of pairs that were never scored, where no number is given."""
    response = service.score(body(next(CALLS) + 1000 if number is None else number))
    assert response.status_code == 200
    answer: dict[str, Any] = response.json()
    return answer


def statuses(answer: dict[str, Any]) -> set[str]:
    return {ad["status"] for ad in answer["scores"]}


def score_and_write(service: RunningService, number: int) -> dict[str, Any]:
    """An auction's answer; returns once its scores are in redis."""
    before = service.metric(wrote("written"))
    answer = score(service, number)
    assert statuses(answer) == {"ok"}
    service.reaches(wrote("written"), lambda value: value == before + N_ADS)
    return answer


def test_what_one_replica_scored_another_answers_with_the_same_score_to_the_last_bit(
    replica: RunningService, bare: RunningService
) -> None:
    computed = score_and_write(replica, 1)
    hits = looked_up(bare, "hit")
    found = score(bare, 1)
    assert statuses(found) == {"cached"}
    assert [ad["score"] for ad in found["scores"]] == [ad["score"] for ad in computed["scores"]]
    assert looked_up(bare, "hit") == hits + N_ADS


def test_damaged_entries_are_computed_anew(
    replica: RunningService, bare: RunningService, redis: RunningRedis
) -> None:
    computed = score_and_write(replica, 2)
    damage_all = (
        "for _, key in ipairs(redis.call('KEYS', '*')) do "
        "redis.call('SETRANGE', key, 3, 'zz') end return 1"
    )
    assert redis.ask("EVAL", damage_all, "0") == "1"
    answer = score(bare, 2)
    assert statuses(answer) == {"ok"}
    assert [ad["score"] for ad in answer["scores"]] == [ad["score"] for ad in computed["scores"]]
    assert looked_up(bare, "invalid") == N_ADS


def test_entries_hold_no_texts_and_are_forgotten_in_time(
    replica: RunningService, redis: RunningRedis
) -> None:
    score_and_write(replica, 3)
    keys = redis.ask("--scan")
    version = replica.client.get("/v1/model").json()["model"]["version"]
    assert keys.count(f"adrel:1:{version}:") >= N_ADS
    assert "shoe" not in keys
    of_each = (
        "local left = {} "
        "for i, key in ipairs(redis.call('KEYS', '*')) do left[i] = redis.call('PTTL', key) end "
        "return left"
    )
    left_ms = [int(left) for left in redis.ask("EVAL", of_each, "0").split()]
    # Those of other replicas, which keep theirs for longer, may be among them; none stays for ever.
    assert min(left_ms) > 0
    assert sum(left <= 1000 * TTL_S for left in left_ms) >= N_ADS


def test_another_model_finds_nothing_of_the_first_ones(
    replica: RunningService, redis: RunningRedis, tiny_bundle_fp32: Path, tmp_path: Path
) -> None:
    score_and_write(replica, 4)
    with replica_of(of_another_version(tiny_bundle_fp32, tmp_path / "b"), redis) as other:
        in_use(other)
        assert statuses(score(other, 4)) == {"ok"}
        assert looked_up(other, "miss") == N_ADS


@contextmanager
def auctions(service: RunningService) -> Iterator[list[tuple[int, set[str]]]]:
    """Under way for as long as the block takes: status and outcomes of each."""
    seen: list[tuple[int, set[str]]] = []
    ended = threading.Event()

    def call() -> None:
        while not ended.is_set():
            response = service.score(body(next(CALLS) + 10**6))
            seen.append((response.status_code, statuses(response.json())))

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    try:
        yield seen
    finally:
        ended.set()
        for caller in callers:
            caller.join(DEADLINE_S)


def wait_for_more(seen: list[Any], number: int) -> None:
    enough = len(seen) + number
    until(lambda: len(seen) >= enough, "no auctions end")


def test_a_redis_that_is_killed_under_load_costs_no_auction_and_is_found_again(
    steady: RunningService, redis: RunningRedis
) -> None:
    with auctions(steady) as seen:
        wait_for_more(seen, 10)
        redis.send(signal.SIGKILL)
        steady.reaches('adrel_shared_cache_breaker{state="closed"}', lambda value: value == 0)
        wait_for_more(seen, 10)
        redis.kill()
        redis.start()
        in_use(steady)
        wait_for_more(seen, 10)
    assert {outcome for outcome, _ in seen} == {200}
    assert set().union(*(outcomes for _, outcomes in seen)) == {"ok"}
    assert looked_up(steady, "skipped") > 0


def test_a_redis_that_hangs_costs_a_few_auctions_a_moment_and_then_nothing(
    steady: RunningService, redis: RunningRedis
) -> None:
    timeouts = looked_up(steady, "timeout")
    redis.send(signal.SIGSTOP)
    waited_ms = []
    for _ in range(4 * MAX_FAILED):
        answer = score(steady)
        assert statuses(answer) == {"ok"}
        waited_ms.append(answer["timing_ms"]["encode"])
    assert steady.metric('adrel_shared_cache_breaker{state="closed"}') == 0
    n_waits = (looked_up(steady, "timeout") - timeouts) / N_ADS
    assert n_waits <= MAX_FAILED
    assert statistics.median(waited_ms) < WAIT_MS / 2, "most did not wait at all"
    assert max(waited_ms) < SHARE_OF_TIMEOUT_MS, "the wait, and what a busy machine adds"
    redis.send(signal.SIGCONT)
    in_use(steady)


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([b"HTTP/1.1 400 Bad Request\r\n\r\n"], id="another protocol"),
        pytest.param([b"*2147483647\r\n"], id="an answer without end"),
        pytest.param([b"*2\r\n$-1\r\n$-1\r\n"] * 3, id="too many answers"),
        pytest.param([bytes((byte,)) for byte in b"*2\r\n$1"], id="half an answer"),
        pytest.param([b"-MOVED 1 127.0.0.1:1\r\n"], id="MOVED"),
        pytest.param([b"-NOAUTH Authentication required.\r\n"], id="NOAUTH"),
        pytest.param([b"-LOADING Redis is loading the dataset in memory\r\n"], id="LOADING"),
        pytest.param([], id="nothing"),
    ],
)
def test_a_server_of_nonsense_in_its_place_costs_no_auction(
    steady: RunningService, redis: RunningRedis, pieces: list[bytes]
) -> None:
    redis.kill()
    with nonsense_at(redis.path, *pieces):
        for _ in range(8):
            assert statuses(score(steady)) == {"ok"}
    assert steady.metric('adrel_shared_cache_breaker{state="closed"}') == 0
    assert steady.process.poll() is None


def test_wrong_answers_to_the_first_questions_give_no_score(
    steady: RunningService, redis: RunningRedis
) -> None:
    values = b"".join(b"$10\r\n0123456789\r\n" for _ in range(2))
    redis.kill()
    with nonsense_at(redis.path, b"*2\r\n" + values):  # fits the probe, and nothing else
        in_use(steady)
        errors = looked_up(steady, "error")
        assert statuses(score(steady)) == {"ok"}
        assert looked_up(steady, "error") == errors + N_ADS


def test_a_redis_that_is_full_is_read_and_the_failing_writes_are_counted(
    steady: RunningService, redis: RunningRedis
) -> None:
    redis.ask("CONFIG", "SET", "maxmemory", "1")
    failed = steady.metric(wrote("failed"))
    misses = looked_up(steady, "miss")
    assert statuses(score(steady)) == {"ok"}
    steady.reaches(wrote("failed"), lambda value: value == failed + N_ADS)
    assert looked_up(steady, "miss") == misses + N_ADS
    assert steady.metric('adrel_shared_cache_breaker{state="closed"}') == 1


def test_a_start_without_a_redis_works_and_finds_it_when_it_comes(
    tiny_bundle_fp32: Path, tmp_path: Path
) -> None:
    redis = RunningRedis(tmp_path / "s", "--requirepass", "secret-7")
    with replica_of(tiny_bundle_fp32, redis, ADREL_REDIS_PASSWORD="secret-7") as service:  # noqa: S106  # of this test's own redis
        assert statuses(score(service)) == {"ok"}
        assert service.metric('adrel_shared_cache_breaker{state="closed"}') == 0
        try:
            redis.start()
            in_use(service)
        finally:
            redis.kill()
    told = [entry for entry in service.log if entry["level"] == "warning"]
    assert "cannot connect to redis" in told[0]["why"]
    assert "secret-7" not in str(service.log)
