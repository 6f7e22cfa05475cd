from __future__ import annotations

import pytest

from service.serve import LAST_BATCHES_S, _batches_end


@pytest.mark.parametrize(
    ("ends_after_s", "ended"),
    [(0.0, True), (LAST_BATCHES_S / 2, True), (LAST_BATCHES_S * 2, False)],
)
def test_a_batch_that_runs_at_the_end_has_a_little_time(ends_after_s: float, ended: bool) -> None:
    now_s = [100.0]

    def sleep(seconds: float) -> None:
        now_s[0] += seconds

    def running() -> int:
        return int(now_s[0] < 100 + ends_after_s)

    assert _batches_end(running, lambda: now_s[0], sleep) is ended
    assert now_s[0] <= 100 + LAST_BATCHES_S + 0.02
