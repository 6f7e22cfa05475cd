from __future__ import annotations

from service.loop_lag import LoopLagProbe
from tests.fakes import FakeClock


def test_a_loop_on_time_has_no_lag_and_a_late_one_has_its_lateness() -> None:
    clock = FakeClock()
    lags: list[float] = []
    LoopLagProbe(clock, lags.append, period_s=0.5).start()
    clock.advance(0.5)
    clock.advance(0.75)
    assert lags == [0.0, 0.25]


def test_a_stall_delays_the_next_probe_and_is_not_counted_twice() -> None:
    clock = FakeClock()
    lags: list[float] = []
    LoopLagProbe(clock, lags.append, period_s=0.5).start()
    clock.advance(2.5)
    clock.advance(0.25)
    assert lags == [2.0]
    clock.advance(0.25)
    assert lags == [2.0, 0.0]


def test_a_stopped_probe_is_silent() -> None:
    clock = FakeClock()
    lags: list[float] = []
    probe = LoopLagProbe(clock, lags.append)
    probe.start()
    probe.stop()
    clock.advance(10)
    assert lags == []
