from __future__ import annotations

import io

from service.bulk.progress import Progress, progress_line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_line_tells_the_share_the_rate_and_the_time_that_is_left() -> None:
    assert progress_line(2_500, 10_000, 500, 10) == (
        "[#####...............] 25 %  2,500 of 10,000 rows  50 rows/s  0:02:30 left"
    )
    assert progress_line(0, 10, 0, 5).endswith("0 rows/s  ? left")
    assert progress_line(0, 0, 0, 0).startswith("[####################] 100 %")


def test_a_terminal_shows_it_in_place_and_not_too_often() -> None:
    out, now_s = Terminal(), [0.0]
    progress = Progress(out, lambda: now_s[0], 10, 4)
    for _ in range(3):
        now_s[0] += 0.15
        progress.advance(1)
    progress.end()
    assert out.getvalue().count("\r") == 2
    assert out.getvalue().endswith("7 of 10 rows  7 rows/s  0:00:00 left\x1b[K\n")


def test_a_log_gets_a_line_now_and_then() -> None:
    out, now_s = io.StringIO(), [0.0]
    progress = Progress(out, lambda: now_s[0], 100, 0)
    for _ in range(70):
        now_s[0] += 1
        progress.advance(1)
    assert progress.end() == 70
    assert [line.split("  ")[1] for line in out.getvalue().splitlines()] == [
        "30 of 100 rows",
        "60 of 100 rows",
    ]
