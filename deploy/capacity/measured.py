"""What the plan rests on, each measured with the default model; ../benchmarks/README.md.

Measured on 2026-11-30 on 2 cores of an Intel Xeon with AVX-512 VNNI and AMX, pairs of 36 tokens on
average; of two days the slower one, so that a plan is on the safe side. Measure again for another
model, other texts or another processor, and give the options.
"""

from __future__ import annotations

CORES = 2
"""Of the machine. Times on more or fewer are reckoned in proportion, which was not tried."""

PAIRS_PER_S = 800.0
"""Over HTTP at saturation, 32 callers (`bench_service`)."""

BARE_PAIRS_PER_S = 876.0
"""ONNX Runtime alone on the same pairs (`bench_service`): the rest is HTTP, in one thread."""

CACHED_PAIRS_PER_S = 43_100.0
"""Requests that hit the cache throughout (`bench_cache`): one process, so one event loop."""

IDLE_MS = 34.8
"""One request of `IDLE_ADS` ads to an idle service, nothing cached, p50 (`bench_service`)."""

IDLE_ADS = 20

IDLE_OVERHEAD_MS = 4.4
"""What of `IDLE_MS` is not the model's (`bench_service`)."""

BUSIEST_OVER_MEAN = 1.25
"""Pairs that the busiest of three replicas computes over the mean, requests sent by the query: the
largest of four runs, 1.09 to 1.25 (`bench_affinity`)."""
