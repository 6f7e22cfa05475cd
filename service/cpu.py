"""How many cores this process may really use.

The host's core count is the wrong answer in a container: threads above the quota are throttled
for whole scheduler periods, which is where latency tails come from.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

CGROUP_V2_FILE = Path("/sys/fs/cgroup/cpu.max")
CGROUP_V1_QUOTA_FILE = Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
CGROUP_V1_PERIOD_FILE = Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us")


def quota_cores(quota: str, period: str) -> float | None:
    """Cores that a cgroup quota allows; None for no limit or unreadable text."""
    try:
        quota_us, period_us = float(quota), float(period)
    except ValueError:  # "max", or an absent file
        return None
    return quota_us / period_us if quota_us > 0 and period_us > 0 else None


def core_count(affinity_cores: int, quota: float | None) -> int:
    """Whole cores within both limits; at least one. A quota of 1.5 cores feeds one busy thread."""
    return max(1, affinity_cores if quota is None else min(affinity_cores, int(quota)))


def give_way() -> None:
    """Let every other thread of the system go before the calling one, where the system can.

    For threads that compute: one that is woken to send an answer that is due need not wait for the
    end of their time slice. They still get all the time that nobody else wants.
    """
    if not hasattr(os, "SCHED_IDLE"):
        return
    with contextlib.suppress(OSError):  # a sandbox may forbid it
        os.sched_setscheduler(threading.get_native_id(), os.SCHED_IDLE, os.sched_param(0))


def thread_core_s(thread_id: int) -> tuple[bool, float] | None:
    """Whether a thread of this process runs or waits for a core, and what it has had of one.

    Args:
        thread_id: The system's, as `threading.get_native_id` gives it.

    Returns:
        With the seconds since the thread began; None for one that has ended, or where the system
        does not tell. Source: proc_pid_stat(5), and Linux' Documentation/scheduler/sched-stats.
    """
    folder = Path("/proc/self/task") / str(thread_id)
    state = _read(folder / "stat").rpartition(") ")[2][:1]
    core_ns = _read(folder / "schedstat").partition(" ")[0]
    return (state == "R", int(core_ns) / 1e9) if state and core_ns else None


def usable_cores() -> int:
    """Cores given by the affinity mask and the cgroup's quota."""
    if hasattr(os, "sched_getaffinity"):
        affinity_cores = len(os.sched_getaffinity(0))
    else:
        affinity_cores = os.cpu_count() or 1
    return core_count(affinity_cores, quota_in_cores())


def quota_in_cores() -> float | None:
    """What the cgroup's quota (v2, else v1) allows; None for no limit."""
    v2 = _read(CGROUP_V2_FILE).split()
    if len(v2) == 2:
        return quota_cores(v2[0], v2[1])
    return quota_cores(_read(CGROUP_V1_QUOTA_FILE), _read(CGROUP_V1_PERIOD_FILE))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii").strip()
    except OSError:
        return ""
