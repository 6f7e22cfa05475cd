"""Which cores each worker runs on, and how many of them it may keep busy."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from service.cpu import quota_in_cores
from service.startup_errors import InvalidSetting

TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/{}"


@dataclass(frozen=True, slots=True)
class CoreShare:
    """What one worker gets of the machine.

    Attributes:
        cores: The worker may run on these, no other worker may. Empty where the system has no
            affinity masks: then it runs anywhere.
        threads: How many of them it may keep busy.
    """

    cores: tuple[int, ...]
    threads: int


def core_shares(n_workers: int) -> list[CoreShare]:
    """Shares of the cores that the affinity mask and the cgroup's quota leave.

    Raises:
        InvalidSetting: There are more workers than cores.
    """
    if hasattr(os, "sched_getaffinity"):
        cores: Sequence[int] = sorted(os.sched_getaffinity(0), key=_place)
    else:
        cores = range(os.cpu_count() or 1)
    shares = split(cores, quota_in_cores(), n_workers)
    if hasattr(os, "sched_setaffinity"):
        return shares
    return [CoreShare((), share.threads) for share in shares]


def split(cores: Sequence[int], quota: float | None, n_workers: int) -> list[CoreShare]:
    """Neighbouring cores for each worker; the first ones get what does not divide.

    Under a quota the workers share all cores of the mask, and keep fewer busy: were they bound to
    as many as the quota allows, all containers of a machine would be bound to the same ones.

    Args:
        cores: Of the affinity mask, neighbours side by side.
        quota: In cores; None for no limit.
        n_workers: At least one.

    Raises:
        InvalidSetting: There are more workers than whole cores within both limits.
    """
    busy = len(cores) if quota is None else max(1, min(len(cores), int(quota)))
    if n_workers > busy:
        allowed = "none" if quota is None else f"{quota:g}"
        raise InvalidSetting(
            f"workers: is {n_workers}, over the limit of {busy}, the cores that the affinity mask "
            f"({len(cores)}) and the cgroup quota ({allowed}) leave"
        )
    sizes, threads = _even(len(cores), n_workers), _even(busy, n_workers)
    starts = [sum(sizes[:number]) for number in range(n_workers)]
    return [
        CoreShare(tuple(cores[start : start + size]), n_threads)
        for start, size, n_threads in zip(starts, sizes, threads, strict=True)
    ]


def _even(total: int, parts: int) -> list[int]:
    return [total // parts + (number < total % parts) for number in range(parts)]


def _place(core: int) -> tuple[int, int, int]:
    """Sorts cores of one socket together, and the threads of one core side by side."""
    return _topology(core, "physical_package_id"), _topology(core, "core_id"), core


def _topology(core: int, fact: str) -> int:
    try:
        return int(Path(TOPOLOGY.format(core, fact)).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0
