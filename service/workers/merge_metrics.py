"""One exposition of many processes. Pure; what each gauge means together stands in one table."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping

from service.workers.series import Family, Snapshot

ADDED_UP = frozenset({"counter", "histogram", "summary"})
"""Kinds that count events: those of all workers, of dead ones too, are one sum that only grows."""

GAUGES: Mapping[str, Callable[[float, float], float]] = {
    # What there is of something, over all workers.
    **dict.fromkeys(
        (
            "adrel_batches_in_flight",
            "adrel_cache_bytes",
            "adrel_cache_entries",
            "adrel_connections",
            "adrel_inference_workers",
            "adrel_queue_pairs",
            "adrel_requests_in_flight",
            "adrel_shadow_waiting_pairs",
            "adrel_stuck_workers",
            "adrel_worker_processes",
            "process_resident_memory_bytes",  # pages that workers share count for each
            "process_virtual_memory_bytes",
        ),
        operator.add,
    ),
    # The worst or the latest of them, or the same in all; a series for each model and release.
    **dict.fromkeys(
        (
            "adrel_build_info",
            "adrel_keys_file_failed",
            "adrel_model_info",
            "adrel_model_loaded_timestamp_seconds",
            "adrel_queue_seconds",
            "adrel_ready",
            "adrel_score_drift",
            "adrel_score_drift_scores",
            "adrel_shadow_model_info",
            "adrel_shared_cache_breaker",
            "process_open_fds",  # its limit is one for each process
            "python_info",
        ),
        max,
    ),
    **dict.fromkeys(
        (
            "adrel_batch_token_budget",
            "adrel_keys",
            "adrel_keys_loaded_timestamp_seconds",  # of whom the last change has not reached
            "process_max_fds",
            "process_start_time_seconds",
        ),
        min,
    ),
}
"""How two workers' values of a gauge's series become one."""


def merged(snapshots: Iterable[Snapshot]) -> Snapshot:
    """All series of all snapshots, each once.

    A series that only some have is as those have it. A gauge that the table does not know is
    added up.
    """
    together: Snapshot = {}
    for families in snapshots:
        for name, family in families.items():
            known = together.get(name)
            if known is None:
                together[name] = Family(name, family.kind, family.help, dict(family.samples))
                continue
            join = operator.add if family.kind in ADDED_UP else GAUGES.get(name, operator.add)
            for series, value in family.samples.items():
                before = known.samples.get(series)
                known.samples[series] = value if before is None else join(before, value)
    return together


def lost(before: Snapshot, now: Snapshot) -> Snapshot:
    """What one worker had counted and counts no longer: kept, no sum ever goes backwards.

    A counter that is lower than before began anew, as one of a cache does that another model
    replaced. A worker that has ended counts nothing.
    """
    kept: Snapshot = {}
    for name, family in before.items():
        if family.kind not in ADDED_UP:
            continue
        later = now[name].samples if name in now else {}
        samples = {
            series: value
            for series, value in family.samples.items()
            if value > later.get(series, 0.0)
        }
        if samples:
            kept[name] = Family(name, family.kind, family.help, samples)
    return kept
