from __future__ import annotations

from collections.abc import Sequence

import pytest

from deploy.faults.outcomes import Ended, Outcome
from deploy.faults.verdict import Story, Verdict, Window, too_little_answered, verdict
from deploy.faults.witness import Wait

GOOD = Ended(10.0, 10.1, Outcome.OK, "v1")
RESET = Ended(20.0, 20.1, Outcome.RESET, why="ConnectionResetError")


def of(story: Story, *ended: Ended, sent: int | None = None, waits: Sequence[Wait] = ()) -> Verdict:
    return verdict(
        len(ended) if sent is None else sent,
        ended,
        story,
        waits=waits,
        timeout_ms=500,
        late_ms=100,
        recover_s=2,
    )


def test_a_service_that_answers_all_in_time_has_survived() -> None:
    account = of(Story(versions=frozenset({"v1"})), GOOD, Ended(11.0, 11.55, Outcome.DEADLINE))
    assert account.complaints == ()
    assert account.counts == {Outcome.OK: 1, Outcome.DEADLINE: 1}
    assert account.latest_ms == pytest.approx(550)


def test_a_request_without_an_end_is_missed() -> None:
    assert of(Story(), GOOD, sent=2).complaints == ("2 requests, 1 ends",)


@pytest.mark.parametrize(
    ("window", "n_complaints"),
    [
        (Window(19.0, 21.0, frozenset({Outcome.RESET})), 0),
        (Window(20.05, 20.06, frozenset({Outcome.RESET})), 0),
        (Window(19.0, 21.0, frozenset({Outcome.REFUSED})), 1),
        (Window(20.2, 21.0, frozenset({Outcome.RESET})), 1),
        (Window(19.0, 19.9, frozenset({Outcome.RESET})), 1),
    ],
)
def test_a_fault_excuses_only_what_it_must_and_only_while_it_lasts(
    window: Window, n_complaints: int
) -> None:
    complaints = of(Story([window]), GOOD, RESET).complaints
    assert len(complaints) == n_complaints
    assert all(one.startswith("1 x reset where it may not be") for one in complaints)


@pytest.mark.parametrize("outcome", [Outcome.SILENCE, Outcome.WRONG, Outcome.FAULT])
def test_silence_wrong_answers_and_faults_are_never_excused_by_being_honest(
    outcome: Outcome,
) -> None:
    assert of(Story(), GOOD, Ended(11.0, 11.1, outcome)).complaints


def test_a_late_answer_is_seen_unless_everything_stood_still() -> None:
    late = Ended(11.0, 11.7, Outcome.OK, "v1")
    assert of(Story(), late).complaints == ("1 answers late, one 700 ms after it was sent",)
    assert of(Story([Window(11.0, 11.5, late=True)]), late).complaints == ()


@pytest.mark.parametrize(
    ("wait", "n_complaints"),
    [
        (Wait(11.1, 11.16), 0),
        (Wait(10.0, 11.06), 0),
        (Wait(11.1, 11.14), 1),
        (Wait(10.0, 11.04), 1),
        (Wait(11.7, 20.0), 1),
    ],
)
def test_twice_what_the_machine_kept_a_thread_waiting_during_a_request_is_granted_to_it(
    wait: Wait, n_complaints: int
) -> None:
    account = of(Story(), Ended(11.0, 11.7, Outcome.OK, "v1"), waits=[wait])
    assert len(account.complaints) == n_complaints
    assert account.machine_ms == pytest.approx((wait.end_s - wait.begin_s) * 1000)


def test_the_machine_excuses_nothing_but_time() -> None:
    always = [Wait(0.0, 100.0)]
    assert of(Story(), GOOD, RESET, waits=always).complaints
    assert of(Story(), GOOD, Ended(11.0, 11.1, Outcome.WRONG), waits=always).complaints
    assert of(Story(), GOOD, sent=2, waits=always).complaints
    assert of(Story(mended_s=8.0), RESET, waits=always).complaints
    assert of(Story(mended_s=7.0), GOOD, waits=always).complaints == ()


def test_recovery_counts_from_the_end_of_the_fault_to_the_first_good_answer_to_a_new_request() -> (
    None
):
    story = Story(mended_s=9.0)
    account = of(story, Ended(8.9, 9.1, Outcome.OK), GOOD)
    assert account.recovered_s == pytest.approx(1.1)
    assert account.complaints == ()
    assert of(Story(mended_s=8.0), GOOD).complaints == (
        "no good answer within 2 s of the fault's end",
    )
    assert of(Story(mended_s=8.0), RESET).recovered_s == float("inf")


def test_a_model_that_never_answered_is_missed() -> None:
    assert of(Story(versions=frozenset({"v1", "v2"})), GOOD).complaints == ("no good answer of v2",)
    assert of(Story(), RESET).complaints[-1] == "not one good answer"


@pytest.mark.parametrize(("n_good", "too_little"), [(0, True), (4, True), (5, False), (10, False)])
@pytest.mark.parametrize("good", [Outcome.OK, Outcome.PARTIAL])
def test_below_half_of_the_requests_with_scores_nothing_can_be_judged(
    good: Outcome, n_good: int, too_little: bool
) -> None:
    scored = [Ended(10.0, 10.1, good, "v1")] * n_good
    shed = [Ended(10.0, 10.1, Outcome.SHED)] * (10 - n_good)
    assert too_little_answered(of(Story(), *scored, *shed)) == too_little
