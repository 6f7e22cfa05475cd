from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from service.shared_cache.breaker import MAX_FAILED
from service.shared_cache.commands import Answer, Refusal
from service.shared_cache.entry import Found
from service.shared_cache.shared_scores import LEAST_WAIT_S, SLACK_SHARE, Asked
from tests.service.shared_cache.fake_redis import pass_time, turns
from tests.service.shared_cache.sharing import TIMEOUT_S, Sharing, sharing

pytestmark = pytest.mark.anyio

ONE, TWO, THREE = b"1" * 16, b"2" * 16, b"3" * 16


@pytest.fixture
async def shared() -> AsyncIterator[Sharing]:
    async with sharing() as made:
        yield made


def ask(shared: Sharing, *digests: bytes, allowed_s: float = 1.0) -> Asked:
    asked = shared.scores.ask(digests, shared.clock.now_s() + allowed_s)
    assert asked is not None
    return asked


def begin(shared: Sharing, *digests: bytes, allowed_s: float = 1.0) -> asyncio.Task[Found]:
    return asyncio.create_task(shared.scores.answer(ask(shared, *digests, allowed_s=allowed_s)))


async def test_all_pairs_of_a_request_are_one_question(shared: Sharing) -> None:
    answer = begin(shared, ONE, TWO, THREE)
    assert shared.connection.sent == [
        [(b"MGET", *(shared.entries.key(one) for one in (ONE, TWO, THREE)))]
    ]
    shared.clock.advance(0.001)
    shared.connection.answer([shared.value(ONE, 0.5, truncated=True), None, shared.value(TWO, 7)])
    found = await answer
    assert (found.rows, found.logits.tolist(), found.truncated) == ([0], [[0.5]], [True])
    assert shared.looked_up == {"hit": 1, "miss": 1, "invalid": 1}
    assert shared.lookup_seconds == [pytest.approx(0.001)]


async def test_what_has_not_come_in_time_is_not_waited_for(shared: Sharing) -> None:
    answer = begin(shared, ONE, TWO)
    await pass_time(shared.clock, TIMEOUT_S * 0.99)
    assert not answer.done()
    await pass_time(shared.clock, TIMEOUT_S * 0.02)
    assert (await answer).rows == []
    assert shared.looked_up == {"timeout": 2}


@pytest.mark.parametrize(("allowed_s", "wait_s"), [(1.0, TIMEOUT_S), (0.01, 0.01 * SLACK_SHARE)])
async def test_an_answer_that_came_in_time_counts_though_the_loop_was_held_up(
    shared: Sharing, allowed_s: float, wait_s: float
) -> None:
    answer = begin(shared, ONE, allowed_s=allowed_s)
    await turns()
    shared.clock.advance(wait_s)  # the timer runs,
    await asyncio.sleep(0)  # and what is ready, before the socket is read
    shared.connection.answer([shared.value(ONE, 0.5)])
    assert (await answer).rows == [0]
    assert shared.looked_up == {"hit": 1}


async def test_an_answer_that_was_given_up_never_reaches_the_next_question(
    shared: Sharing,
) -> None:
    given_up = begin(shared, ONE)
    await pass_time(shared.clock, TIMEOUT_S)
    assert (await given_up).rows == []
    next_one = begin(shared, TWO)
    await turns()
    shared.connection.answer([shared.value(ONE, 0.25)])
    await turns()
    assert not next_one.done()
    shared.connection.answer([shared.value(TWO, 0.75)])
    assert (await next_one).logits.tolist() == [[0.75]]


async def test_a_redis_that_mixes_its_answers_up_gives_no_score(shared: Sharing) -> None:
    answers = begin(shared, ONE), begin(shared, TWO)
    await turns()
    shared.connection.answer([shared.value(TWO, 0.75)])
    shared.connection.answer([shared.value(ONE, 0.25)])
    assert [(await answer).rows for answer in answers] == [[], []]
    assert shared.looked_up == {"invalid": 2}


async def test_a_request_waits_for_a_share_of_its_time_at_most(shared: Sharing) -> None:
    answer = begin(shared, ONE, allowed_s=0.01)
    await turns()
    await pass_time(shared.clock, 0.01 * SLACK_SHARE)
    assert (await answer).rows == []
    assert shared.looked_up == {"timeout": 1}
    assert shared.cache.state == "closed"
    assert shared.lookup_seconds == [], "redis has time left"
    shared.connection.answer([None])
    assert shared.lookup_seconds == [pytest.approx(0.001)]


async def test_a_request_without_time_to_wait_asks_nothing(shared: Sharing) -> None:
    deadline_s = shared.clock.now_s() + LEAST_WAIT_S / SLACK_SHARE * 0.99
    assert shared.scores.ask([ONE, TWO], deadline_s) is None
    assert shared.connection.sent == []
    assert shared.looked_up == {"skipped": 2}


async def test_requests_that_want_the_same_pairs_at_once_share_the_question(
    shared: Sharing,
) -> None:
    first = begin(shared, ONE, TWO)
    await turns()
    second = begin(shared, THREE, TWO)
    await turns()
    asked = [command[1:] for [command] in shared.connection.sent]
    assert asked == [
        (shared.entries.key(ONE), shared.entries.key(TWO)),
        (shared.entries.key(THREE),),
    ]
    shared.connection.answer([None, shared.value(TWO, 0.5)])
    await turns()
    assert first.done()
    assert not second.done()
    shared.connection.answer([None])
    assert (await second).rows == [1]
    assert shared.looked_up == {"hit": 2, "miss": 2}


async def test_a_request_that_leaves_takes_no_answer_from_another(shared: Sharing) -> None:
    leaves, stays = begin(shared, ONE), begin(shared, ONE)
    await turns()
    leaves.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaves
    shared.connection.answer([shared.value(ONE, 0.5)])
    assert (await stays).rows == [0]
    assert shared.connection.ended is None


async def test_a_pair_is_asked_for_anew_once_it_was_answered(shared: Sharing) -> None:
    for logit in (0.25, 0.5):
        answer = begin(shared, ONE)
        await turns()
        shared.connection.answer([shared.value(ONE, logit)])
        assert (await answer).logits.tolist() == [[logit]]


async def test_timeouts_open_the_breaker_and_then_no_request_pays(shared: Sharing) -> None:
    hung = shared.connection
    for _ in range(MAX_FAILED):
        answer = begin(shared, ONE)
        await turns()
        await pass_time(shared.clock, TIMEOUT_S)
        assert (await answer).rows == []
    assert shared.cache.state == "open"
    assert hung.ended == "redis answers too late"
    n_timers = len(shared.clock.timers)
    assert shared.scores.ask([ONE], shared.clock.now_s() + 1) is None
    assert len(shared.clock.timers) == n_timers
    assert shared.looked_up == {"timeout": MAX_FAILED, "skipped": 1}


async def test_a_request_gives_up_at_once_when_the_connection_ends(shared: Sharing) -> None:
    answer = begin(shared, ONE, TWO)
    await turns()
    shared.connection.abort("redis closed the connection")
    assert (await answer).rows == []
    assert shared.looked_up == {"error": 2}
    await pass_time(shared.clock, 1.0)
    assert shared.cache.state == "closed"


@pytest.mark.parametrize("word", ["OOM", "LOADING", "NOAUTH", "MOVED"])
async def test_refusals_are_errors_and_enough_of_them_open_the_breaker(
    shared: Sharing, word: str
) -> None:
    for _ in range(MAX_FAILED):
        answer = begin(shared, ONE)
        await turns()
        shared.connection.answer(Refusal(f"{word} and the rest"))
        assert (await answer).rows == []
    assert shared.looked_up == {"error": MAX_FAILED}
    assert shared.cache.state == "open"
    assert shared.connection.ended == f"redis answered {word}"


@pytest.mark.parametrize("answer", [b"OK", 7, None, [], [None], [None] * 3, [[None, None]]])
async def test_an_answer_of_another_shape_ends_the_connection(
    shared: Sharing, answer: Answer
) -> None:
    found = begin(shared, ONE, TWO)
    await turns()
    shared.connection.answer(answer)
    assert (await found).rows == []
    assert shared.connection.ended == "redis answers something else than was asked"
    assert shared.looked_up == {"error": 2}


async def test_a_redis_full_of_what_is_none_of_ours_is_left_alone(shared: Sharing) -> None:
    for _ in range(MAX_FAILED):
        answer = begin(shared, ONE, TWO)
        await turns()
        shared.connection.answer([b"nonsense", None])
        await answer
    assert shared.looked_up == {"invalid": MAX_FAILED, "miss": MAX_FAILED}
    assert shared.cache.state == "open"


async def test_one_entry_of_nonsense_among_sound_ones_is_no_reason_to_leave(
    shared: Sharing,
) -> None:
    for _ in range(3 * MAX_FAILED):
        answer = begin(shared, ONE, TWO)
        await turns()
        shared.connection.answer([b"nonsense", shared.value(TWO, 0.5)])
        assert (await answer).rows == [1]
    assert shared.cache.state == "closed"
