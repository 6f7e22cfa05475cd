from __future__ import annotations

from dataclasses import dataclass

from tests.service.metrics.conftest import made, value

SERIES = ("adrel_keys", "adrel_keys_loaded_timestamp_seconds", "adrel_keys_file_failed")


@dataclass
class Keys:
    n_keys: int = 2
    loaded_s: float = 1000.0
    file_failed: bool = False


def test_where_no_key_is_asked_for_all_series_are_0() -> None:
    metrics = made()
    for whose in ("callers", "operators"):
        assert [value(metrics, name, whose=whose) for name in SERIES] == [0, 0, 0]
    for problem in ("missing", "wrong"):
        assert value(metrics, "adrel_unauthorized_total", key=problem) == 0


def test_the_keys_are_looked_at_when_the_metrics_are_scraped() -> None:
    metrics, keys = made(), Keys()
    metrics.keys.watch("operators", keys)
    keys.n_keys, keys.loaded_s, keys.file_failed = 3, 2000.0, True
    assert [value(metrics, name, whose="operators") for name in SERIES] == [3, 2000, 1]
    assert [value(metrics, name, whose="callers") for name in SERIES] == [0, 0, 0]


def test_a_refusal_counts_by_what_was_wrong_with_the_key() -> None:
    metrics = made()
    metrics.keys.unauthorized(has_key=False)
    metrics.keys.unauthorized(has_key=True)
    metrics.keys.unauthorized(has_key=True)
    assert value(metrics, "adrel_unauthorized_total", key="missing") == 1
    assert value(metrics, "adrel_unauthorized_total", key="wrong") == 2
