from __future__ import annotations

from deploy.loadtest.goodput import GoodputTotals


def test_totals_of_several_processes_add_up() -> None:
    master, workers = GoodputTotals(), [GoodputTotals(), GoodputTotals()]
    for worker in workers:
        worker.add({"good": 15, "deadline": 5})
        master.merge(worker.take())
        master.merge(worker.take())  # nothing new
    assert "40 pairs asked for, 15 good pairs/s" in master.summary(duration_s=2)
    assert "good 30 (75.00%), deadline 10 (25.00%)" in master.summary(duration_s=2)


def test_a_run_with_no_answer_has_a_summary_and_is_not_sound() -> None:
    assert GoodputTotals().summary(0).startswith("goodput: 0 pairs asked for\n")
    assert not GoodputTotals().is_sound()


def test_overload_is_sound_and_a_fault_is_not() -> None:
    totals = GoodputTotals()
    totals.add({"refused": 20, "late": 1, "deadline": 1})
    assert totals.is_sound()
    totals.add({"good": 20, "failed": 1})
    assert not totals.is_sound()


def test_a_new_run_forgets_the_last_one() -> None:
    totals = GoodputTotals()
    totals.add({"failed": 1})
    totals.reset()
    totals.add({"good": 1})
    assert totals.is_sound()
