from __future__ import annotations

from service.workers.restart_policy import RestartPolicy

POLICY = RestartPolicy(steady_s=30, first_delay_s=0.1, max_delay_s=0.5, max_failures=6)


def test_the_first_restart_is_at_once_and_each_later_one_in_a_row_waits_twice_as_long() -> None:
    assert [POLICY.delay_s(failures) for failures in range(7)] == [0, 0, 0.1, 0.2, 0.4, 0.5, 0.5]


def test_one_failure_more_than_allowed_ends_it() -> None:
    assert POLICY.delay_s(7) is None


def test_a_worker_that_served_for_long_begins_the_row_anew() -> None:
    assert POLICY.failures(5, served_s=29.9) == 6
    assert POLICY.failures(5, served_s=30) == 1


def test_a_very_long_row_has_no_delay_that_is_too_large_to_be_a_number() -> None:
    assert RestartPolicy(max_failures=10_000).delay_s(1_000) == 10.0
