"""What one task of the cluster does. Apart from the command, so that workers can import it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from service.bulk.part_run import PartRun, RunPlan, open_table
from service.bulk.part_scorer import PartScorer
from service.bulk.part_store import PartRecord, PartStore
from service.bulk.table import PartSpec
from service.scoring.bundle import open_bundle
from service.scoring.golden_pairs import self_test
from service.startup_errors import BundleIncompatible


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """What every task needs besides its part.

    Attributes:
        plan: Of the run.
        folder: Of the parts; all nodes must see it under this name, and the input and the bundle.
        bundle: Folder of the model.
        model_version: That it must have.
        threads: One-thread runs at once in a task, which asks for as many cores.
    """

    plan: RunPlan
    folder: Path
    bundle: Path
    model_version: str
    threads: int


def score_part(options: TaskOptions, part: PartSpec) -> PartRecord:
    """A part from the input to the disk.

    Raises:
        InputChanged: It is not the input that was surveyed.
        BundleIncompatible: The bundle is not the run's on this node.
        InferenceFailed: The runtime failed.
    """
    plan = options.plan
    scorer = _scorer(options.bundle, options.model_version, options.threads, plan.limit_bytes)
    run = PartRun(plan, open_table(plan.path, plan.limit_bytes), scorer)
    finished = run.finish(run.start(part))
    PartStore(options.folder, f".{plan.out}").write(finished)
    return finished.record


@functools.cache
def _scorer(bundle: Path, version: str, threads: int, limit_bytes: int) -> PartScorer:
    """Opened once in a process; Ray gives it one part after the other."""
    opened = open_bundle(bundle)
    found = opened.manifest.model.version
    if found != version:
        raise BundleIncompatible(f"{bundle} is model version {found} here, the run's is {version}")
    self_test(opened)
    return PartScorer(opened, threads, limit_bytes)
