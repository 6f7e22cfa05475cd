from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.parser import text_string_to_metric_families

from service.caching.fixed_cache import FixedCache
from service.metrics.all_metrics import Metrics
from service.metrics.shadow_metrics import ShadowMetrics
from service.workers.merge_metrics import ADDED_UP, GAUGES, lost, merged
from service.workers.series import Family, Snapshot, exposition, from_json, snapshot, to_json


def all_of_the_service() -> Snapshot:
    metrics = Metrics(CollectorRegistry(), ["/v1/score"], ["ok"])
    metrics.model.serves(name="m", version="1", precision="int8", provider="cpu", since_s=9)
    metrics.process.release_runs("1")
    shadow = ShadowMetrics(metrics.registry)
    shadow.shadow_is(name="n", version="2", precision="int8", provider="cpu")
    shadow.watch_waiting(lambda: 0)
    metrics.model.watch_caches(FixedCache(2**16, 5), FixedCache(2**16, 5))
    return snapshot(metrics.registry)


def counter(value: float, name: str = "c") -> Snapshot:
    return {name: Family(name, "counter", "", {(f"{name}_total", ()): value})}


def gauge(name: str, value: float, **labels: str) -> Snapshot:
    return {name: Family(name, "gauge", "", {(name, tuple(labels.items())): value})}


def value(families: Snapshot, name: str = "c") -> float:
    (number,) = families[name].samples.values()
    return number


def test_every_metric_of_the_service_is_a_count_or_has_its_line_in_the_table() -> None:
    families = all_of_the_service()
    assert len(families) > 40
    gauges = {name for name, family in families.items() if family.kind not in ADDED_UP}
    assert gauges == GAUGES.keys()


def test_counts_are_added_up_and_gauges_by_their_own_rule() -> None:
    one = {**counter(2), **gauge("adrel_queue_pairs", 3), **gauge("adrel_score_drift", 0.1)}
    two = {**counter(5), **gauge("adrel_queue_pairs", 4), **gauge("adrel_score_drift", 0.3)}
    one |= gauge("process_start_time_seconds", 100)
    two |= gauge("process_start_time_seconds", 90)
    both = merged([one, two])
    assert (value(both), value(both, "adrel_queue_pairs")) == (7, 7)
    assert value(both, "adrel_score_drift") == 0.3
    assert value(both, "process_start_time_seconds") == 90


def test_of_keys_the_worker_tells_that_a_change_has_not_reached() -> None:
    name = "adrel_keys_loaded_timestamp_seconds"
    ahead = {**gauge("adrel_keys", 3), **gauge(name, 2000), **gauge("adrel_keys_file_failed", 0)}
    behind = {**gauge("adrel_keys", 2), **gauge(name, 1000), **gauge("adrel_keys_file_failed", 1)}
    both = merged([ahead, behind])
    assert [value(both, one) for one in behind] == [2, 1000, 1]


def test_two_models_during_a_reload_are_two_series() -> None:
    old, new = (gauge("adrel_model_info", 1, version=version) for version in "12")
    assert merged([old, new, new])["adrel_model_info"].samples == {
        ("adrel_model_info", (("version", "1"),)): 1,
        ("adrel_model_info", (("version", "2"),)): 1,
    }


def test_the_snapshots_themselves_stay_as_they_are() -> None:
    one = counter(2)
    merged([one, counter(3)])
    assert value(one) == 2


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["count", "end", "begin anew"])), max_size=40
    )
)
def test_a_sum_never_goes_backwards_whatever_ends_or_begins_anew(
    events: list[tuple[int, str]],
) -> None:
    counts: dict[int, float] = {}
    latest: dict[int, Snapshot] = {}
    kept: Snapshot = {}
    shown = 0.0
    for worker, event in events:
        if event == "end":
            kept = merged([kept, lost(latest.pop(worker, {}), {})])
            counts.pop(worker, None)
        else:
            counts[worker] = 1.0 if event == "begin anew" else counts.get(worker, 0.0) + 1
            now = counter(counts[worker])
            kept = merged([kept, lost(latest.get(worker, {}), now)])
            latest[worker] = now
        together = merged([kept, *latest.values()])
        total = value(together) if together else 0.0
        assert total >= shown
        shown = total


def test_of_a_worker_that_has_ended_no_gauge_stays() -> None:
    assert lost({**counter(2), **gauge("adrel_queue_pairs", 3)}, {}).keys() == {"c"}


def test_series_come_through_json_and_into_an_exposition_as_they_were() -> None:
    registry = CollectorRegistry()
    Counter("c", "Of c.", ("label",), registry=registry).labels('a "quoted"\nvalue').inc(3)
    Histogram("h", "Of h.", buckets=(1, 2), registry=registry).observe(1.5)
    Gauge("g", "Of g.", registry=registry).set(math.nan)
    families = from_json(to_json(snapshot(registry)))
    told = {
        (sample.name, tuple(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(exposition(families).decode())
        for sample in family.samples
    }
    assert told[("c_total", (("label", 'a "quoted"\nvalue'),))] == 3
    assert told[("h_bucket", (("le", "1.0"),))] == 0
    assert told[("h_bucket", (("le", "2.0"),))] == told[("h_count", ())] == 1
    assert told[("h_sum", ())] == 1.5
    assert math.isnan(told[("g", ())])
