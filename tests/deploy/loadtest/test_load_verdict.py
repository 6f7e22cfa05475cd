from __future__ import annotations

from typing import Any

import pytest

from deploy.loadtest.load_verdict import last_kept, seconds_to_recover, share_text, verdict
from tests.deploy.loadtest.made_records import figures, report


def test_the_answer_is_the_highest_load_that_was_kept_and_how_late_its_answers_were() -> None:
    kept, answer, grounds = verdict(report())
    assert kept
    assert answer == (
        "Keeps 640 pairs/s: 99 % of the pairs have a score within 155 ms, and 99 % of the answers "
        "come within 87.0 ms."
    )
    assert grounds == [
        "That is 0.8 of the capacity, 800 pairs/s (a closed loop of 32 callers).",
        "Asked for 2 times the capacity (1,600 pairs/s), it still gives 640 good pairs/s: "
        "40 % of the pairs are good, 55 % refused at once, 5 % scored too late.",
        "After a spike to 1,600 pairs/s, 99 % of the pairs are good again 1 s later.",
    ]


def test_a_load_is_kept_only_if_every_lower_one_was() -> None:
    def kept_load(*steps: dict[str, Any]) -> float | None:
        found = last_kept(steps)
        return found["load"] if found is not None else None

    low, middle, high = report()["steps"]
    assert kept_load(low, middle, high) == 0.8
    missed = {**middle, **figures(640.0, {"refused": 0.02})}
    assert kept_load(low, missed, {**low, "load": 2.0}) == 0.5
    assert kept_load(high) is None


def test_a_service_that_keeps_nothing_is_told_so() -> None:
    kept, answer, _ = verdict(report(steps=report()["steps"][2:]))
    assert not kept
    assert answer.startswith("Does not keep 1,600 pairs/s, the least that was asked for: 40 %")


def test_a_limit_that_was_not_reached_is_not_told() -> None:
    _, _, grounds = verdict(report(steps=report()["steps"][:2], spike=False))
    assert grounds[1:] == ["Every load was kept: the limit is higher."]


def test_less_than_the_best_under_the_highest_load_is_told() -> None:
    steps = report()["steps"]
    steps[-1] |= figures(1600.0, {"refused": 0.7})
    told = " ".join(verdict(report(steps=steps))[2])
    assert "480 good pairs/s, 75.7 % of its best: 30 % of the pairs" in told


def test_a_fault_is_the_answer_whatever_was_kept() -> None:
    kept, answer, _ = verdict(report(fault_pairs=20))
    assert not kept
    assert answer.startswith("Faults: 20 pairs")


def test_a_test_that_was_stopped_says_so_and_nothing_of_a_limit() -> None:
    stopped = "the service has gone: connection refused"
    sound, _, grounds = verdict(report(steps=report()["steps"][:2], spike=False, stopped=stopped))
    assert not sound
    assert grounds[0].startswith(f"Stopped early: {stopped}.")
    assert "limit" not in " ".join(grounds)


def test_a_test_that_was_stopped_before_the_first_load_has_no_answer() -> None:
    sound, answer, grounds = verdict(report(steps=[], spike=False, stopped="gone"))
    assert not sound
    assert answer == "No load was measured."
    assert len(grounds) == 1


def test_a_late_load_generator_a_cache_and_another_model_are_told() -> None:
    steps = report()["steps"]
    steps[1] |= {"sent_late_p99_ms": 12.0, "cached_share": 0.5}
    told = " ".join(verdict(report(steps=steps, model_versions=["a", "b"]))[2])
    assert "load generator was itself up to 12.0 ms late" in told
    assert "50 % of its scores came out of the cache." in told
    assert "Another model took over" in told


def test_recovery_is_counted_from_the_end_of_the_spike() -> None:
    timeline = report()["timeline"]
    assert seconds_to_recover(timeline) == 1
    unmended = {**timeline, "rows": timeline["rows"][:7]}
    assert seconds_to_recover(unmended) is None
    assert verdict(report(timeline=unmended))[2][-1] == (
        "After a spike to 1,600 pairs/s, it was not back at 99 % of the pairs being good before "
        "the end."
    )


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (1.0, "100 %"), (0.99999, "99.9 %"), (0.99, "99 %"), (0.0004, "under 0.1 %"),
        (0.0, "0 %"), (0.3, "30 %"),
    ],
)  # fmt: skip
def test_a_share_is_never_rounded_up(share: float, text: str) -> None:
    assert share_text(share) == text
