from __future__ import annotations

import itertools

import pytest

from service.shared_cache.breaker import (
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    MAX_FAILED,
    STEADY_LOOKUPS,
    WINDOW_S,
    Breaker,
)


def closed() -> Breaker:
    breaker = Breaker(lambda: 1.0)  # the longest pause that jitter allows
    breaker.try_again()
    breaker.close()
    return breaker


def test_it_is_open_at_first_and_to_be_tried_at_once() -> None:
    breaker = Breaker(lambda: 1.0)
    assert breaker.state == "open"
    assert breaker.retry_at_s == 0


def test_an_attempt_makes_it_half_open_and_its_success_closes_it() -> None:
    breaker = Breaker(lambda: 1.0)
    breaker.try_again()
    assert breaker.state == "half_open"
    breaker.close()
    assert breaker.state == "closed"


def test_it_opens_with_the_failure_that_is_one_too_many() -> None:
    breaker = closed()
    told = [breaker.failed(10.0) for _ in range(MAX_FAILED)]
    assert told == [False] * (MAX_FAILED - 1) + [True]
    assert breaker.state == "open"
    assert breaker.retry_at_s == 10.0 + FIRST_PAUSE_S
    assert not breaker.failed(10.0), "it was open"


def test_a_failure_in_three_does_not_open_it() -> None:
    breaker = closed()
    for number in range(300):
        if number % 3:
            breaker.succeeded()
        else:
            assert not breaker.failed(number / 100)


def test_failures_of_long_ago_do_not_count() -> None:
    breaker = closed()
    for number in range(3 * MAX_FAILED):
        assert not breaker.failed(number * WINDOW_S / (MAX_FAILED - 1.5))


def test_what_failed_before_it_was_closed_does_not_count() -> None:
    breaker = closed()
    for _ in range(MAX_FAILED - 1):
        breaker.failed(1.0)
    breaker.open(1.0)
    breaker.close()
    assert not breaker.failed(1.0)


def test_each_pause_is_twice_the_one_before_up_to_the_longest() -> None:
    breaker = closed()
    pauses = []
    for _ in range(12):
        breaker.open(0.0)
        pauses.append(breaker.retry_at_s)
        breaker.try_again()
    assert pauses[0] == FIRST_PAUSE_S
    assert all(later == min(2 * one, LONGEST_PAUSE_S) for one, later in itertools.pairwise(pauses))
    assert pauses[-1] == LONGEST_PAUSE_S


@pytest.mark.parametrize(("random", "share"), [(0.0, 0.5), (0.5, 0.75), (1.0, 1.0)])
def test_jitter_shortens_a_pause_by_up_to_half(random: float, share: float) -> None:
    breaker = Breaker(lambda: random)
    breaker.open(5.0)
    assert breaker.retry_at_s == 5.0 + share * FIRST_PAUSE_S


@pytest.mark.parametrize(("n_answers", "factor"), [(STEADY_LOOKUPS - 1, 2), (STEADY_LOOKUPS, 1)])
def test_only_steady_answers_make_the_pauses_short_again(n_answers: int, factor: int) -> None:
    breaker = closed()
    breaker.open(0.0)
    breaker.try_again()
    breaker.close()
    for _ in range(n_answers):
        breaker.succeeded()
    breaker.open(0.0)
    assert breaker.retry_at_s == factor * FIRST_PAUSE_S


def test_a_failure_between_them_makes_answers_not_steady() -> None:
    breaker = closed()
    breaker.open(0.0)
    breaker.close()
    for _ in range(STEADY_LOOKUPS - 1):
        breaker.succeeded()
    breaker.failed(0.0)
    breaker.succeeded()
    breaker.open(0.0)
    assert breaker.retry_at_s == 2 * FIRST_PAUSE_S
