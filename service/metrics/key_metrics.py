"""Series of the keys: how many hold and since when, and who came without one."""

from __future__ import annotations

from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge

PROBLEMS = ("missing", "wrong")
OWNERS = ("callers", "operators")


class KeysInForce(Protocol):
    """Keys that are asked for."""

    @property
    def n_keys(self) -> int:
        """How many there are."""

    @property
    def loaded_s(self) -> float:
        """Unix time at which they were read."""

    @property
    def file_failed(self) -> bool:
        """Whether their file cannot be used as it is, so that those of before hold."""


class KeyMetrics:
    """Fed where a caller is refused; the keys are looked at when it is scraped."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register everything.

        Args:
            registry: Where the collectors go.
        """
        self._unauthorized = Counter(
            "adrel_unauthorized",
            "Requests for any path that were refused for want of a key, or for a wrong one.",
            ("key",),
            registry=registry,
        )
        self._keys = Gauge(
            "adrel_keys",
            "Keys that hold now; 0 where none is asked for.",
            ("whose",),
            registry=registry,
        )
        self._loaded = Gauge(
            "adrel_keys_loaded_timestamp_seconds",
            "Unix time at which the keys that hold were read; 0 where none is asked for.",
            ("whose",),
            registry=registry,
        )
        self._file_failed = Gauge(
            "adrel_keys_file_failed",
            "1 while the file of the keys cannot be used, so that those of before hold.",
            ("whose",),
            registry=registry,
        )
        for problem in PROBLEMS:
            self._unauthorized.labels(problem)
        for whose in OWNERS:
            for gauge in (self._keys, self._loaded, self._file_failed):
                gauge.labels(whose)

    def watch(self, whose: str, keys: KeysInForce) -> None:
        """Look at keys whenever the metrics are scraped.

        Args:
            whose: One of `OWNERS`.
            keys: Theirs.
        """
        self._keys.labels(whose).set_function(lambda: keys.n_keys)
        self._loaded.labels(whose).set_function(lambda: keys.loaded_s)
        self._file_failed.labels(whose).set_function(lambda: keys.file_failed)

    def unauthorized(self, *, has_key: bool) -> None:
        """Record a request that was refused before it was read.

        Args:
            has_key: It had a key, which was wrong.
        """
        self._unauthorized.labels("wrong" if has_key else "missing").inc()
