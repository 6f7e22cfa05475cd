"""Metrics as plain values that can travel between processes, and back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

Series = tuple[str, tuple[tuple[str, str], ...]]
"""Name of a sample and its labels."""


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: a sample for each of its series.

    Attributes:
        name: Without the ending of its samples.
        kind: As Prometheus has it: counter, gauge, histogram, ...
        help: What it tells.
        samples: In the order of the exposition.
    """

    name: str
    kind: str
    help: str
    samples: dict[Series, float]


Snapshot = dict[str, Family]
"""Families by their names."""


def snapshot(registry: CollectorRegistry) -> Snapshot:
    """All series of a registry as they stand."""
    families: Snapshot = {}
    for metric in registry.collect():
        samples = {
            (sample.name, tuple(sample.labels.items())): float(sample.value)
            for sample in metric.samples
        }
        families[metric.name] = Family(metric.name, metric.type, metric.documentation, samples)
    return families


def to_json(families: Snapshot) -> list[Any]:
    """What `from_json` reads."""
    return [
        [
            family.name,
            family.kind,
            family.help,
            [[*key, value] for key, value in family.samples.items()],
        ]
        for family in families.values()
    ]


def from_json(content: Iterable[Any]) -> Snapshot:
    """What `to_json` was given; a value that is no number comes back as NaN."""
    families: Snapshot = {}
    for name, kind, text, samples in content:
        families[name] = Family(
            name,
            kind,
            text,
            {
                (sample, tuple((label, value) for label, value in labels)): (
                    math.nan if number is None else number
                )
                for sample, labels, number in samples
            },
        )
    return families


def exposition(families: Snapshot) -> bytes:
    """As Prometheus scrapes it."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Fixed(families))
    return generate_latest(registry)


class _Fixed(Collector):
    def __init__(self, families: Snapshot) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        for family in self._families.values():
            metric = Metric(family.name, family.help, family.kind)
            for (sample, labels), value in family.samples.items():
                metric.add_sample(sample, dict(labels), value)
            yield metric
