from __future__ import annotations

from collections.abc import AsyncIterator

import numpy as np
import pytest

from service.shared_cache.commands import Answer, Refusal
from service.shared_cache.writes import BATCH, MAX_QUEUED, PAUSE_S
from tests.service.shared_cache.fake_redis import pass_time
from tests.service.shared_cache.sharing import Sharing, sharing

pytestmark = pytest.mark.anyio

OK = b"OK"
LOGIT = np.array([0.5], np.float32)


@pytest.fixture
async def shared() -> AsyncIterator[Sharing]:
    async with sharing() as made:
        yield made


def keep(shared: Sharing, *numbers: int) -> None:
    for number in numbers:
        shared.scores.keep(digest(number), LOGIT, truncated=False)


def digest(number: int) -> bytes:
    return b"%016d" % number


async def test_a_computed_pair_is_written_a_little_later_and_forgotten_in_time(
    shared: Sharing,
) -> None:
    keep(shared, 1)
    assert shared.connection.sent == [], "the answer goes first"
    await pass_time(shared.clock, PAUSE_S)
    written = (b"SET", shared.entries.key(digest(1)), shared.value(digest(1), 0.5), b"EX", b"60")
    assert shared.connection.sent == [[written]]
    assert shared.wrote == {}
    shared.connection.answer(OK)
    assert shared.wrote == {"written": 1}


async def test_many_pairs_are_written_in_batches_one_after_the_other(shared: Sharing) -> None:
    keep(shared, *range(BATCH + 1))
    await pass_time(shared.clock, PAUSE_S)
    keep(shared, BATCH + 1)
    await pass_time(shared.clock, PAUSE_S)
    assert [len(batch) for batch in shared.connection.sent] == [BATCH]
    shared.connection.answer(*[OK] * BATCH)
    await pass_time(shared.clock, PAUSE_S)
    assert [len(batch) for batch in shared.connection.sent] == [BATCH, 2]
    shared.connection.answer(OK, OK)
    await pass_time(shared.clock, PAUSE_S)
    assert len(shared.connection.sent) == 2
    assert shared.wrote == {"written": BATCH + 2}


async def test_what_a_slow_redis_cannot_take_is_dropped_and_counted(shared: Sharing) -> None:
    keep(shared, 0)
    await pass_time(shared.clock, PAUSE_S)
    keep(shared, *range(MAX_QUEUED + 3))
    assert shared.wrote == {"dropped": 3}


async def test_without_a_redis_nothing_is_kept(shared: Sharing) -> None:
    keep(shared, 1, 2)
    shared.redis.probe_answers = []
    shared.connection.abort("redis closed the connection")
    keep(shared, 3)
    assert shared.wrote == {"dropped": 1}
    await pass_time(shared.clock, PAUSE_S)
    assert shared.wrote == {"dropped": 3}


async def test_a_batch_whose_connection_ends_has_failed_and_the_next_goes_out_again(
    shared: Sharing,
) -> None:
    keep(shared, 1, 2)
    await pass_time(shared.clock, PAUSE_S)
    shared.connection.abort("redis closed the connection")
    assert shared.wrote == {"failed": 2}
    await pass_time(shared.clock, 1.0)
    keep(shared, 3)
    await pass_time(shared.clock, PAUSE_S)
    assert len(shared.connection.sent[-1]) == 1


@pytest.mark.parametrize("word", ["OOM", "READONLY", "MISCONF"])
async def test_a_redis_that_takes_nothing_is_told_of_once_and_still_asked(
    shared: Sharing, word: str, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        keep(shared, 1, 2)
        await pass_time(shared.clock, PAUSE_S)
        shared.connection.answer(OK, Refusal(f"{word} command not allowed"))
    assert shared.wrote == {"written": 3, "failed": 3}
    assert shared.scores.ask([digest(9)], shared.clock.now_s() + 1) is not None
    told = [record for record in caplog.records if "takes no scores" in record.message]
    assert [record.__dict__["why"] for record in told] == [f"redis answered {word}"]


@pytest.mark.parametrize("answer", [None, 1, [b"OK"], b"QUEUED"])
async def test_an_answer_of_another_shape_ends_the_connection(
    shared: Sharing, answer: Answer
) -> None:
    keep(shared, 1, 2)
    await pass_time(shared.clock, PAUSE_S)
    shared.connection.answer(OK, answer)
    assert shared.connection.ended == "redis answers something else than was asked"
    assert shared.wrote == {"written": 1, "failed": 1}
