from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.batching.token_budget import RECOVER_S, TokenBudget

FULL = TokenBudget(4096, 4096)
NOW_S = 100.0


def test_it_is_halved_from_what_did_not_fit_and_never_raised_by_a_failure() -> None:
    lowered = FULL.lowered(1000, NOW_S)
    assert (lowered.tokens, lowered.is_short) == (500, True)
    assert lowered.lowered(4000, NOW_S).tokens == 500
    assert lowered.lowered(1, NOW_S).tokens == 1


def test_it_doubles_with_each_quiet_time_until_it_is_full() -> None:
    lowered = FULL.lowered(2048, NOW_S)
    quiet = [lowered.at(NOW_S + passed * RECOVER_S).tokens for passed in (0.9, 1.0, 1.9, 2.0, 9.0)]
    assert quiet == [1024, 2048, 2048, 4096, 4096]
    assert lowered.at(NOW_S + 2.9 * RECOVER_S).is_short, "full batches are on trial"
    assert lowered.at(NOW_S + 9 * RECOVER_S) == FULL


def test_a_failure_begins_the_quiet_time_anew() -> None:
    again = FULL.lowered(2048, NOW_S).lowered(2048, NOW_S + RECOVER_S - 1)
    assert again.at(NOW_S + RECOVER_S).tokens == 1024
    assert again.at(NOW_S + 2 * RECOVER_S - 1).tokens == 2048


@given(st.lists(st.tuples(st.integers(1, 10_000), st.floats(0, 100))))
def test_whatever_happens_it_stays_within_its_bounds_and_recovers(
    failures: list[tuple[int, float]],
) -> None:
    budget, now_s = FULL, NOW_S
    for tokens, passed_s in failures:
        now_s += passed_s
        budget = budget.at(now_s).lowered(tokens, now_s)
        assert 1 <= budget.tokens <= max(1, min(tokens // 2, 4096))
    assert budget.at(now_s + 14 * RECOVER_S) == FULL
