from __future__ import annotations

import logging

from service.log_limit import LINES_PER_S, FewOfEachKind


def line(message: str) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": message})


def test_a_few_lines_of_each_kind_pass_in_a_second_and_the_next_tells_of_the_rest() -> None:
    at_s = [100.0]
    few = FewOfEachKind(lambda: at_s[0])
    assert [few.filter(line("junk")) for _ in range(8)] == [True] * LINES_PER_S + [False] * 3
    assert few.filter(line("another"))
    at_s[0] += 0.99
    assert not few.filter(line("junk"))
    at_s[0] += 0.01
    next_one = line("junk")
    assert few.filter(next_one)
    assert vars(next_one)["suppressed"] == 4


def test_lines_that_all_passed_leave_nothing_to_tell() -> None:
    at_s = [100.0]
    few = FewOfEachKind(lambda: at_s[0])
    for _ in range(3):
        at_s[0] += 2
        told = line("now and then")
        assert few.filter(told)
        assert "suppressed" not in vars(told)
