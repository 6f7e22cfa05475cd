from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from service.caching.token_cache import Ids
from service.domain import PairStatus, ScoreAnswer
from service.errors import QueueFull
from service.text_tokens import INLINE_MAX_CHARS
from tests.fakes import until
from tests.service.scorer_bench import Bench, query, several
from tests.service.shared_cache.fake_redis import pass_time, turns
from tests.service.shared_cache.sharing import TIMEOUT_S, Sharing, sharing

pytestmark = pytest.mark.anyio

LONG = "x" * INLINE_MAX_CHARS


class Replica(Bench):
    """A scorer with a local cache and a shared one."""

    def __init__(self, shared: Sharing, cache_bytes: int = 2**20) -> None:
        super().__init__(cache_bytes, shared.clock, shared.scores)
        self.shared = shared

    def digests(self, *texts: str) -> list[bytes]:
        return self.scores.keys("q", texts)

    @property
    def asked(self) -> list[list[bytes]]:
        """Digests of each question."""
        sent = (commands[0] for commands in self.shared.connection.sent)
        return [[key[-16:] for key in one[1:]] for one in sent if one[0] == b"MGET"]

    @property
    def computed(self) -> list[float]:
        return sorted(pair.logit for batch in self.model.batches for pair in batch)

    def begin(self, *texts: str, timeout_s: float = 1.0) -> asyncio.Task[ScoreAnswer]:
        return asyncio.create_task(self.scorer.score(query(*texts, timeout_s=timeout_s)))

    async def answer(self, *logits: float | None, truncated: bool = False) -> None:
        """Redis answers the one question that is open."""
        await turns()
        values = [
            None if logit is None else self.shared.value(one, logit, truncated=truncated)
            for one, logit in zip(self.asked[-1], logits, strict=True)
        ]
        self.shared.connection.answer(values)


@pytest.fixture
async def replica() -> AsyncIterator[Replica]:
    async with sharing() as shared:
        made = Replica(shared)
        yield made
        made.model.release()
        await made.batcher.drain(timeout_s=30)


def statuses(answer: ScoreAnswer) -> list[str]:
    return [ad.status.value for ad in answer.scores]


async def test_what_another_replica_scored_is_not_computed_and_has_the_same_score(
    replica: Replica,
) -> None:
    task = replica.begin("1", "2")
    await replica.answer(12.5, 25.25, truncated=True)
    answer = await task
    assert statuses(answer) == ["cached", "cached"]
    assert [ad.score for ad in answer.scores] == [0.125, 0.2525]
    assert [ad.truncated for ad in answer.scores] == [True, True]
    assert replica.computed == []
    assert replica.text.joined == 0


async def test_what_came_from_there_is_here_from_then_on(replica: Replica) -> None:
    task = replica.begin("1")
    await replica.answer(12.5)
    await task
    again = await replica.scorer.score(query("1"))
    assert statuses(again) == ["cached"]
    assert again.scores[0].score == 0.125
    assert len(replica.asked) == 1


async def test_only_what_is_nowhere_is_computed(replica: Replica) -> None:
    task = replica.begin("3", "1", "3", "2")
    await replica.answer(None, 12.5, None)
    answer = await task
    assert statuses(answer) == ["ok", "cached", "ok", "ok"]
    assert [ad.score for ad in answer.scores] == [0.03, 0.125, 0.03, 0.02]
    assert replica.computed == [2, 3]


async def test_texts_are_cut_into_tokens_while_redis_is_asked(replica: Replica) -> None:
    task = replica.begin("1", "2")
    await turns()
    assert len(replica.asked) == 1
    assert replica.text.tokenized == ["q", "1", "2"]
    assert replica.text.joined == 0
    await replica.answer(None, None)
    assert statuses(await task) == ["ok", "ok"]


async def test_the_question_leaves_before_the_loop_is_busy_with_texts(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    send, tokenize = replica.shared.connection.send, replica.text.tokenize

    def send_soon(*arguments: Any) -> None:  # noqa: ANN401  # handed on as they are
        asyncio.get_running_loop().call_soon(events.append, "left")  # as uvloop's sockets do
        send(*arguments)

    def tokenize_now(texts: Sequence[str]) -> list[Ids]:
        events.append("tokenized")
        return tokenize(texts)

    monkeypatch.setattr(replica.shared.connection, "send", send_soon)
    monkeypatch.setattr(replica.scorer._tokens, "_tokenize", tokenize_now)
    task = replica.begin("1")
    await replica.answer(12.5)
    await task
    assert events == ["left", "tokenized"]


async def test_what_redis_does_not_tell_in_time_is_computed(replica: Replica) -> None:
    task = replica.begin("1", "2")
    await turns()
    assert replica.computed == []
    await pass_time(replica.clock, TIMEOUT_S)
    answer = await task
    assert statuses(answer) == ["ok", "ok"]
    assert [ad.score for ad in answer.scores] == [0.01, 0.02]
    assert answer.times.encode_s == pytest.approx(TIMEOUT_S)


async def test_without_a_redis_nothing_is_different(replica: Replica) -> None:
    replica.shared.connection.abort("redis closed the connection")
    answer = await replica.scorer.score(query("1", "2"))
    assert statuses(answer) == ["ok", "ok"]
    assert replica.shared.looked_up == {"skipped": 2}
    assert answer.times.encode_s == 0


async def test_what_was_computed_is_written_and_nothing_else(replica: Replica) -> None:
    task = replica.begin("1", "2 long enough")
    await replica.answer(12.5, None)
    await task
    await pass_time(replica.clock, 1.0)
    [written] = [sent for sent in replica.shared.connection.sent if sent[0][0] == b"SET"]
    [digest] = replica.digests("2 long enough")
    value = replica.shared.value(digest, 2, truncated=True)
    assert [command[1:3] for command in written] == [(replica.shared.entries.key(digest), value)]


async def test_a_failure_is_not_written(replica: Replica) -> None:
    replica.model.fail_on = lambda _: True
    task = replica.begin("1")
    await replica.answer(None)
    with pytest.raises(Exception, match="model failed"):
        await task
    await pass_time(replica.clock, 1.0)
    assert len(replica.shared.connection.sent) == 1


async def test_pairs_that_were_made_up_are_neither_asked_for_nor_written(
    replica: Replica,
) -> None:
    await replica.scorer.score(dataclasses.replace(query("1"), probe=True))
    await pass_time(replica.clock, 1.0)
    assert replica.shared.connection.sent == []


async def test_pairs_of_several_queries_are_looked_up_in_one_go(replica: Replica) -> None:
    task = asyncio.create_task(replica.scorer.score(several("1", "22", texts=["70", "70"])))
    await replica.answer(None, 12.5)
    answer = await task
    assert [ad.score for ad in answer.scores] == [0.70, 0.125]
    assert [len(digests) for digests in replica.asked] == [2]


async def test_requests_that_want_the_same_pairs_at_once_ask_once_and_compute_once(
    replica: Replica,
) -> None:
    first, second = replica.begin("1", "2"), replica.begin("2", "1")
    await replica.answer(None, 12.5)
    for task, scores in ((first, [0.01, 0.125]), (second, [0.125, 0.01])):
        assert [ad.score for ad in (await task).scores] == scores
    assert len(replica.asked) == 1
    assert replica.computed == [1]


async def test_a_pair_in_flight_is_not_looked_up(replica: Replica) -> None:
    replica.model.hold()
    first = replica.begin("1")
    await replica.answer(None)
    await until(lambda: replica.batcher.running_batches == 1)
    second = replica.begin("1", "2")
    await turns()
    assert replica.asked[1:] == [replica.digests("2")]
    await replica.answer(12.5)
    replica.model.release()
    assert statuses(await first) == ["ok"]
    assert statuses(await second) == ["ok", "cached"]


async def test_a_caller_that_leaves_while_redis_is_asked_harms_nobody(replica: Replica) -> None:
    leaves = replica.begin("1", "2")
    await turns()
    stays = replica.begin("2", "3")
    await turns()
    leaves.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaves
    assert replica.asked == [replica.digests("1", "2"), replica.digests("3")]
    one, two = replica.digests("1", "2")
    replica.shared.connection.answer([replica.shared.value(one, 11), replica.shared.value(two, 22)])
    await replica.answer(33)
    assert [ad.score for ad in (await stays).scores] == [0.22, 0.33]


async def test_a_request_of_long_texts_is_looked_up_before_much_is_spent_on_it(
    replica: Replica,
) -> None:
    task = replica.begin(f"1 {LONG}", timeout_s=9)
    await turns()
    assert replica.text.tokenized == []
    await replica.answer(12.5)
    assert statuses(await task) == ["cached"]
    assert replica.text.tokenized == []


async def test_what_is_known_is_answered_though_there_is_no_room_to_compute(
    replica: Replica,
) -> None:
    replica.model.hold()
    running = replica.begin("1", timeout_s=9)
    await replica.answer(None)
    await until(lambda: replica.batcher.running_batches == 1)
    texts = list(map(str, range(100, 600)))
    refused = replica.begin(*texts, timeout_s=9)
    await replica.answer(*[None] * 500)
    with pytest.raises(QueueFull):
        await refused
    known = replica.begin(*texts, timeout_s=9)
    await replica.answer(*[12.5] * 500)
    assert {ad.status for ad in (await known).scores} == {PairStatus.CACHED}
    replica.model.release()
    await running


async def test_a_shared_cache_works_without_a_local_one(replica: Replica) -> None:
    bare = Replica(replica.shared, cache_bytes=0)
    for _ in range(2):
        task = bare.begin("1")
        await bare.answer(12.5)
        assert statuses(await task) == ["cached"]
    assert len(bare.asked) == 2
