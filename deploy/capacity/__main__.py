"""How many pods of adrel a fleet needs, and why; README.md beside this file has the figures."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import MISSING, fields

from deploy.capacity.plan import LIMITS, CannotPlan, Demand, Plan, plan


def main(argv: Sequence[str]) -> int:
    """Print the plan.

    Returns:
        Exit code: 0, or 1 where no number of pods would do. Wrong options exit with 2.
    """
    parser = _parser()
    try:
        demand = Demand(**vars(parser.parse_args(argv)))
    except ValueError as error:
        parser.error(str(error))
    try:
        told = _told(demand, plan(demand))
    except CannotPlan as error:
        print(f"capacity: {error}", file=sys.stderr)
        return 1
    try:
        print(told, flush=True)
    except BrokenPipeError:
        # Who reads it has seen enough. Python would flush again at its end, and say so.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m deploy.capacity", description=__doc__)
    for field in fields(Demand):
        _, _, takes = LIMITS[field.name]
        required = field.default is MISSING
        parser.add_argument(
            "--" + field.name.replace("_", "-"),
            type=int if field.type == "int" else float,
            required=required,
            default=None if required else field.default,
            help=takes if required else f"{takes} (%(default)g)",
        )
    return parser


def _told(demand: Demand, made: Plan) -> str:
    lost = f", {made.pods // demand.zones} in each of {demand.zones} zones" * (demand.zones > 1)
    cores = made.cores_per_pod
    lines = [
        f"{_counted(made.pods, 'pod')} of {_counted(cores, 'core')}{lost}: "
        f"{_counted(made.pods * cores, 'core')}",
        "",
        f"An auction of {_counted(demand.ads, 'ad')}, none cached, takes {made.cold_ms:.1f} ms on "
        "an idle pod. "
        f"Of {demand.timeout_ms:g} ms",
        f"{demand.network_ms:g} go to the network and {demand.answer_margin_ms:g} to the answer "
        f"margin, so it may wait {made.wait_ms:.1f} ms.",
        f"For {demand.objective * 100:g} % on time a pod may be busy {made.busy:.0%} of the time.",
        f"With {demand.hit_share:.0%} of the pairs cached, and the busiest pod at "
        f"{demand.busiest_over_mean:g} x the mean, that is {made.auctions_per_s_per_pod:.1f} "
        "auctions/s",
        f"a pod: {_counted(made.pods_for_load, 'pod')} for {demand.auctions_per_s:g} auctions/s.",
    ]
    if demand.zones > 1:
        lines += [
            f"If a zone is lost, so are its caches: {made.hit_share_after_loss:.0%} hits, "
            f"for which {_counted(made.pods_after_loss, 'pod')} must be left.",
        ]
    lines += [
        "",
        f"Autoscale on adrel_queue_seconds at {made.queue_seconds:.4f} s a pod, never below "
        f"{_counted(made.pods, 'pod')} at this peak.",
    ]
    return "\n".join(lines)


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
