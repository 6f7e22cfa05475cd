"""How many pods: a pure function from what is asked to a plan with its reasons.

A pod is a queue with one server: its cores share each auction's pairs, so one of which nothing is
cached takes S = ads / (pairs/s of the pod). With Poisson arrivals and a share rho of the time busy,
the mean wait is rho S / (2 (1 - rho)) (Pollaczek 1930, Khinchine 1932, constant S), and a wait over
t has the probability rho exp(-2 (1 - rho) t / S) (Kingman 1962, heavy traffic). An auction is on
time if it waits no longer than its timeout leaves; rho is as large as the objective allows.

The hits are taken to come by the auction: all its ads are cached or none, which is the worst case.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from deploy.capacity import measured

POD_CORES = (2, 4, 8)

# Waits explode near 1, and costs are predicted to some per cent only.
MOST_BUSY = 0.8

# One thread reads, answers and looks up for all cores of a pod; its delays are everybody's.
LOOP_MOST_BUSY = 0.5
LOOP_S_PER_CACHED_PAIR = 1 / measured.CACHED_PAIRS_PER_S
LOOP_S_PER_COMPUTED_PAIR = measured.CORES * (
    1 / measured.PAIRS_PER_S - 1 / measured.BARE_PAIRS_PER_S
)


class CannotPlan(Exception):
    """No number of pods is enough; says which field, and what would do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What is asked of the fleet, and what was measured.

    Attributes:
        auctions_per_s: At the peak.
        ads: Of an auction.
        timeout_ms: For an answer with all scores, by the caller's clock.
        hit_share: Of the pairs, those that are in a cache (`adrel_cache_requests_total`).
        objective: Share of the auctions that must be on time.
        network_ms: Both ways between the caller and the pod, with what is on the way.
        answer_margin_ms: The setting of that name.
        zones: Over which pods are spread; one of several may be lost.
        pairs_per_s_per_core: Over HTTP at saturation.
        busiest_over_mean: Load of the busiest pod over the mean.
        cores_per_pod: 0: those of `POD_CORES` that need the fewest cores in all.
    """

    auctions_per_s: float
    ads: int
    timeout_ms: float
    hit_share: float = 0.0
    objective: float = 0.99
    network_ms: float = 2.0
    answer_margin_ms: float = 3.0
    zones: int = 3
    pairs_per_s_per_core: float = measured.PAIRS_PER_S / measured.CORES
    busiest_over_mean: float = measured.BUSIEST_OVER_MEAN
    cores_per_pod: int = 0

    def __post_init__(self) -> None:
        """Refuse what no fleet has.

        Raises:
            ValueError: Names the field and its limits.
        """
        for name, (least, most, takes) in LIMITS.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise ValueError(f"{name}: takes {takes}, got {value:g}")


LIMITS: dict[str, tuple[float, float, str]] = {
    "auctions_per_s": (0.001, 1e7, "a number from 0.001 to 10,000,000"),
    "ads": (1, 1_000, "a whole number from 1 to 1,000 (max_ads_per_request)"),
    "timeout_ms": (1, 60_000, "milliseconds from 1 to 60,000 (max_timeout_ms)"),
    "hit_share": (0, 1, "a share from 0 to 1"),
    "objective": (0.5, 0.9999, "a share from 0.5 to 0.9999"),
    "network_ms": (0, 60_000, "milliseconds from 0 to 60,000"),
    "answer_margin_ms": (0, 60_000, "milliseconds from 0 to 60,000"),
    "zones": (1, 100, "a whole number from 1 to 100"),
    "pairs_per_s_per_core": (0.1, 1e7, "a number from 0.1 to 10,000,000"),
    "busiest_over_mean": (1, 10, "a number from 1 to 10"),
    "cores_per_pod": (0, 1_024, "a whole number from 0 to 1,024"),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """The fleet, and how it comes about.

    Attributes:
        cores_per_pod: Whole cores, requests and limits.
        cold_ms: An auction of which nothing is cached, on an idle pod.
        wait_ms: What its timeout leaves it to wait.
        busy: Share of the time that a pod may be busy.
        auctions_per_s_per_pod: At that share, with the hits.
        pods_for_load: Enough while all zones are there.
        hit_share_after_loss: When a zone has gone and its queries have come to other pods' caches.
        pods_after_loss: Enough then.
        pods: In all zones, so that those are left when one is lost.
        queue_seconds: Mean predicted seconds that wait in a pod which is as busy as it may be: the
            autoscaler's target for `adrel_queue_seconds`.
    """

    cores_per_pod: int
    cold_ms: float
    wait_ms: float
    busy: float
    auctions_per_s_per_pod: float
    pods_for_load: int
    hit_share_after_loss: float
    pods_after_loss: int
    pods: int
    queue_seconds: float


def plan(demand: Demand) -> Plan:
    """The fleet with the fewest cores that serves the demand, also when a zone is lost.

    Raises:
        CannotPlan: An auction is late on an idle pod already.
    """
    sizes = (demand.cores_per_pod,) if demand.cores_per_pod else POD_CORES
    plans = [_plan(demand, cores) for cores in sizes if _wait_ms(demand, cores) > 0]
    if not plans:
        raise CannotPlan(_too_short(demand, sizes[-1]))
    return min(plans, key=lambda one: (one.pods * one.cores_per_pod, one.cores_per_pod))


def _plan(demand: Demand, cores: int) -> Plan:
    service_s = demand.ads / (demand.pairs_per_s_per_core * cores)
    wait_s = _wait_ms(demand, cores) / 1000
    lost = 1 if demand.zones > 1 else 0
    hits_after_loss = demand.hit_share * (1 - lost / demand.zones)
    # What is cached is on time, so with fewer hits the objective allows fewer of the others late.
    busy = _most_busy(service_s, wait_s, _late_share(demand, hits_after_loss))
    per_pod = _auctions_per_s(demand, cores, busy, demand.hit_share)
    per_pod_after = _auctions_per_s(demand, cores, busy, hits_after_loss)
    after_loss = math.ceil(demand.auctions_per_s / per_pod_after)
    per_zone = math.ceil(after_loss / (demand.zones - lost))
    return Plan(
        cores_per_pod=cores,
        cold_ms=_cold_ms(demand, cores),
        wait_ms=wait_s * 1000,
        busy=busy,
        auctions_per_s_per_pod=per_pod,
        pods_for_load=math.ceil(demand.auctions_per_s / per_pod),
        hit_share_after_loss=hits_after_loss,
        pods_after_loss=after_loss,
        pods=per_zone * demand.zones,
        queue_seconds=busy * service_s / (2 * (1 - busy)),
    )


def _auctions_per_s(demand: Demand, cores: int, busy: float, hit_share: float) -> float:
    """What a pod of mean load does, so that the busiest is no busier than `busy`."""
    computed, cached = demand.ads * (1 - hit_share), demand.ads * hit_share
    core_s = computed / demand.pairs_per_s_per_core + cached * LOOP_S_PER_CACHED_PAIR
    loop_s = computed * LOOP_S_PER_COMPUTED_PAIR + cached * LOOP_S_PER_CACHED_PAIR
    return min(busy * cores / core_s, LOOP_MOST_BUSY / loop_s) / demand.busiest_over_mean


def _late_share(demand: Demand, hit_share: float) -> float:
    """Of the auctions that must be computed, those that may be late."""
    late = 1 - demand.objective
    return min(1.0, late / (1 - hit_share)) if hit_share < 1 else 1.0


def _most_busy(service_s: float, wait_s: float, late_share: float) -> float:
    """The largest share of busy time at which no more wait longer than `wait_s`."""
    low, high = 0.0, MOST_BUSY
    for _ in range(50):
        middle = (low + high) / 2
        late = middle * math.exp(-2 * (1 - middle) * wait_s / service_s)
        low, high = (middle, high) if late <= late_share else (low, middle)
    return low


def _cold_ms(demand: Demand, cores: int) -> float:
    """An auction of which nothing is cached, on an idle pod; in proportion to the measured one."""
    pace = measured.PAIRS_PER_S / measured.CORES / demand.pairs_per_s_per_core
    idle_ms_per_ad = (measured.IDLE_MS - measured.IDLE_OVERHEAD_MS) / measured.IDLE_ADS
    return measured.IDLE_OVERHEAD_MS + demand.ads * idle_ms_per_ad * pace * measured.CORES / cores


def _wait_ms(demand: Demand, cores: int) -> float:
    # As the service does: of a short timeout at most a quarter.
    margin_ms = min(demand.answer_margin_ms, demand.timeout_ms / 4)
    return demand.timeout_ms - demand.network_ms - margin_ms - _cold_ms(demand, cores)


def _too_short(demand: Demand, cores: int) -> str:
    cold_ms = _cold_ms(demand, cores)
    least_ms = math.ceil(demand.network_ms + demand.answer_margin_ms + cold_ms) + 1
    return (
        f"timeout_ms: is {demand.timeout_ms:g}, and {demand.ads} ads of which none is cached take "
        f"{cold_ms:.0f} ms on an idle pod of {cores} cores; allow {least_ms} ms or more, or send "
        "fewer ads"
    )
