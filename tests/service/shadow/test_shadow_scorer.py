"""The shadow on a fake clock: it runs when it may, drops what has no room, and harms nobody."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Callable

import pytest

from service.domain import Ad, AdScore, PairStatus, ScoreAnswer, ScoreQuery, StageTimes
from service.shadow import policy
from service.shadow.comparison import Comparison
from service.shadow.shadow_scorer import ShadowScorer
from tests.fakes import FakeClock, until

pytestmark = pytest.mark.anyio

NO_TIME = StageTimes(0.0, 0.0, 0.0, 0.0)


class Bench:
    """A shadow that scores by the length of the ad's text, and all that it tells."""

    def __init__(self, share: float = 1.0) -> None:
        self.clock = FakeClock()
        self.may_start = True
        self.scored: list[tuple[str, str]] = []
        self.threads: set[str] = set()
        self.error: Exception | None = None
        self.takes_s = 0.0
        self.gate = threading.Event()
        self.gate.set()
        self.times_s: list[float] = []
        self.comparisons: list[Comparison] = []
        self.n_failed = self.n_dropped = 0
        self.shadow = ShadowScorer(self.score, share, lambda: self.may_start, self.clock, self)

    def score(self, query: str, ad: Ad) -> float:
        self.scored.append((query, ad.text))
        self.threads.add(threading.current_thread().name)
        assert self.gate.wait(timeout=30)
        self.clock.time_s += self.takes_s
        if self.error is not None:
            raise self.error
        return len(ad.text) / 10

    def pair_took(self, seconds: float) -> None:
        self.times_s.append(seconds)

    def compared(self, comparison: Comparison) -> None:
        self.comparisons.append(comparison)

    def failed(self, n_pairs: int) -> None:
        self.n_failed += n_pairs

    def dropped(self, n_pairs: int) -> None:
        self.n_dropped += n_pairs

    async def turn(self) -> None:
        """Let the loop go on until everybody waits for the clock or a thread."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def pass_time_until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                await self.turn()
                self.clock.advance(policy.LOOK_EVERY_S)

    async def pass_time_until_scored(self, n_pairs: int) -> None:
        await self.pass_time_until(lambda: len(self.times_s) == n_pairs)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with a_bench() as made:
        yield made


@contextlib.asynccontextmanager
async def a_bench(share: float = 1.0) -> AsyncIterator[Bench]:
    made = Bench(share)
    working = asyncio.create_task(made.shadow.run())
    yield made
    assert not working.done(), "nothing may end it"
    made.gate.set()
    working.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await working


def asked(
    *texts: str, request_id: str = "r1", min_score: float | None = None, probe: bool = False
) -> ScoreQuery:
    ads = tuple(Ad(str(n), text=text) for n, text in enumerate(texts))
    return ScoreQuery(request_id, "q", ads, 1.0, min_score=min_score, probe=probe)


def answered(query: ScoreQuery, *scores: float | None) -> ScoreAnswer:
    """The answer; scores that are not given are 0.5."""
    given = scores or (0.5,) * len(query.ads)
    ads = tuple(
        AdScore(ad.id, score, PairStatus.OK if score is not None else PairStatus.DEADLINE, False)
        for ad, score in zip(query.ads, given, strict=True)
    )
    return ScoreAnswer(query.request_id, ads, NO_TIME)


def offer(bench: Bench, query: ScoreQuery, *scores: float | None) -> None:
    bench.shadow.offer(query, answered(query, *scores))


async def test_a_request_is_scored_whole_in_a_thread_of_its_own_and_compared(bench: Bench) -> None:
    offer(bench, asked("ab", "abcd", min_score=0.3), 0.3, 0.1)
    await bench.pass_time_until(lambda: len(bench.comparisons) == 1)
    assert bench.scored == [("q", "ab"), ("q", "abcd")]
    assert [name.partition("_")[0] for name in bench.threads] == ["shadow"]
    [found] = bench.comparisons
    assert found.differences == pytest.approx((-0.1, 0.3))
    assert (found.rank_agreement, found.same_top) == (0.0, False)
    assert (found.n_kept, found.n_gained, found.n_lost) == (0, 1, 1)
    await bench.pass_time_until(lambda: bench.shadow.waiting_pairs == 0)


async def test_the_answer_leaves_before_the_first_pair_starts(bench: Bench) -> None:
    offer(bench, asked("ab"))
    await bench.turn()
    assert bench.scored == []
    bench.clock.advance(policy.LOOK_EVERY_S)
    await until(lambda: bench.scored != [])


async def test_no_pair_starts_while_others_are_at_work(bench: Bench) -> None:
    bench.may_start = False
    offer(bench, asked("ab", "abcd"))
    for _ in range(50):
        await bench.turn()
        bench.clock.advance(policy.LOOK_EVERY_S)
    assert bench.scored == []
    bench.may_start = True
    await bench.pass_time_until_scored(1)
    bench.may_start = False
    for _ in range(50):
        await bench.turn()
        bench.clock.advance(policy.LOOK_EVERY_S)
    assert len(bench.scored) == 1


async def test_after_each_pair_it_rests_for_its_duty(bench: Bench) -> None:
    bench.takes_s = 0.1
    offer(bench, asked("a", "ab", "abc"))
    await bench.turn()
    bench.clock.advance(policy.LOOK_EVERY_S)
    await until(lambda: len(bench.times_s) == 1)
    assert bench.times_s == pytest.approx([0.1])
    await bench.turn()
    bench.clock.advance(policy.rest_s(0.1) - 0.001)
    await bench.turn()
    assert len(bench.scored) == 1
    bench.clock.advance(0.002)
    await until(lambda: len(bench.times_s) == 2)


async def test_one_pair_runs_at_a_time(bench: Bench) -> None:
    bench.gate.clear()
    for _ in range(3):
        offer(bench, asked("ab", "abc"))
    await bench.turn()
    bench.clock.advance(policy.LOOK_EVERY_S)
    await until(lambda: bench.shadow.running)
    for _ in range(50):
        await bench.turn()
        bench.clock.advance(policy.LOOK_EVERY_S)
    assert len(bench.scored) == 1


async def test_what_has_no_room_is_dropped_and_counted_whole(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.may_start = False
    monkeypatch.setattr(policy, "MAX_WAITING_PAIRS", 5)
    for _ in range(10):
        offer(bench, asked("a", "ab"))
    assert bench.shadow.waiting_pairs == 4
    assert bench.n_dropped == 16


async def test_room_is_given_back_when_a_request_has_been_scored(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "MAX_WAITING_CHARS", 10)
    offer(bench, asked("a" * 8))
    offer(bench, asked("a" * 8))
    assert bench.n_dropped == 1
    await bench.pass_time_until(lambda: bench.shadow.waiting_pairs == 0)
    offer(bench, asked("a" * 8))
    assert bench.n_dropped == 1


async def test_only_ads_with_a_score_are_compared(bench: Bench) -> None:
    offer(bench, asked("a", "ab", "abc"), 0.1, None, 0.3)
    await bench.pass_time_until(lambda: bench.comparisons != [])
    assert bench.scored == [("q", "a"), ("q", "abc")]


async def test_pairs_of_several_queries_keep_their_own_and_have_no_order(bench: Bench) -> None:
    query = ScoreQuery(
        "r1", "q", (Ad("0", text="a"), Ad("1", text="ab")), 1.0, queries=("red", "blue")
    )
    offer(bench, query, 0.9, 0.1)
    await bench.pass_time_until(lambda: bench.comparisons != [])
    assert bench.scored == [("red", "a"), ("blue", "ab")]
    assert bench.comparisons[0].rank_agreement is None


async def test_texts_that_were_made_up_are_no_traffic(bench: Bench) -> None:
    offer(bench, asked("a", probe=True))
    assert bench.shadow.waiting_pairs == 0


async def test_the_sample_goes_by_the_requests_id() -> None:
    async with a_bench(share=0.3) as bench:
        bench.may_start = False
        for _ in range(2):
            for number in range(50):
                offer(bench, asked("a", request_id=f"r{number}"))
        chosen = sum(policy.is_sampled(f"r{number}", 0.3) for number in range(50))
        assert bench.shadow.waiting_pairs == 2 * chosen
        assert 0 < chosen < 50


async def test_a_failing_shadow_is_counted_told_once_and_goes_on(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.error = MemoryError("no more")
    for _ in range(3):
        offer(bench, asked("a", "ab"))
    with caplog.at_level(logging.ERROR):
        await bench.pass_time_until(lambda: bench.n_failed == 6)
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert len(bench.scored) == 3, "the rest of a request that failed is not computed"
    bench.error = None
    offer(bench, asked("a"))
    await bench.pass_time_until(lambda: len(bench.comparisons) == 1)
    bench.error = MemoryError("again")
    with caplog.at_level(logging.ERROR):
        offer(bench, asked("a"))
        await bench.pass_time_until(lambda: bench.n_failed == 7)
    assert len(caplog.records) == 2


async def test_a_shadow_that_hangs_lets_its_room_fill_up_and_no_more(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "MAX_WAITING_PAIRS", 3)
    bench.gate.clear()
    offer(bench, asked("a"))
    await bench.turn()
    bench.clock.advance(policy.LOOK_EVERY_S)
    await until(lambda: bench.shadow.running)
    for _ in range(9):
        offer(bench, asked("a"))
    assert (bench.shadow.waiting_pairs, bench.n_dropped) == (3, 7)


async def test_when_another_model_serves_what_waits_is_dropped(bench: Bench) -> None:
    bench.may_start = False
    offer(bench, asked("a", "ab"))
    offer(bench, asked("a"))
    bench.shadow.forget()
    assert (bench.shadow.waiting_pairs, bench.n_dropped) == (0, 3)
    bench.may_start = True
    offer(bench, asked("abc"))
    await bench.pass_time_until_scored(1)
    assert bench.scored == [("q", "abc")]
