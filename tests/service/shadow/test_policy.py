from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.shadow import policy


@pytest.mark.parametrize("share", [0.01, 0.05, 0.5])
def test_ids_that_follow_each_other_are_sampled_as_often_as_asked(share: float) -> None:
    n_ids = 20_000
    n_sampled = sum(policy.is_sampled(f"bac6be2f5fc0c3a2-{n:x}", share) for n in range(n_ids))
    deviation = (n_ids * share * (1 - share)) ** 0.5
    assert abs(n_sampled - n_ids * share) < 4 * deviation


@given(st.text(max_size=20), st.floats(0, 1), st.floats(0, 1))
def test_what_a_small_share_samples_a_larger_one_does_too(
    request_id: str, share: float, other: float
) -> None:
    small, large = sorted((share, other))
    assert policy.is_sampled(request_id, small) <= policy.is_sampled(request_id, large)


@given(st.text(max_size=20))
def test_a_share_of_one_samples_everything_and_none_nothing(request_id: str) -> None:
    assert policy.is_sampled(request_id, 1.0)
    assert not policy.is_sampled(request_id, 0.0)


def test_an_id_is_sampled_alike_in_every_process() -> None:
    sampled = [n for n in range(100) if policy.is_sampled(f"auction-{n}", 0.05)]
    assert sampled == [3, 43, 59, 76, 99]


@given(st.integers(0, 3), st.integers(0, 9), st.integers(1, 9))
def test_nothing_waits_and_a_worker_stays_idle_beside_the_shadow(
    queued_pairs: int, running_batches: int, workers: int
) -> None:
    if policy.may_start(queued_pairs, running_batches, workers):
        assert queued_pairs == 0
        assert running_batches == 0 or running_batches + 2 <= workers


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_it_may_start_where_nobody_is_at_work(workers: int) -> None:
    assert policy.may_start(0, 0, workers)


@given(st.floats(0, 100))
def test_the_shadow_takes_its_part_of_a_core_and_no_more(took_s: float) -> None:
    rest_s = policy.rest_s(took_s)
    assert took_s / (took_s + rest_s) <= policy.DUTY + 1e-9
    assert rest_s >= policy.LOOK_EVERY_S


def test_what_waits_is_bounded_in_pairs_and_in_characters() -> None:
    pairs, chars = policy.MAX_WAITING_PAIRS, policy.MAX_WAITING_CHARS
    assert policy.fits(0, 0, pairs, chars)
    assert not policy.fits(1, 0, pairs, 0)
    assert not policy.fits(0, 1, 1, chars)
