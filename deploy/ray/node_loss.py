"""The claim of this folder, put to the test: many rows, a node killed midway, every row counted.

    python -m deploy.ray.node_loss --bundle bundles/default --rows 100000

Starts a cluster of two nodes on the loopback of this machine, scores made-up pairs on it, kills one
node (SIGKILL to its raylet) when half of the parts are done, scores the same file in one process,
and compares: the same bytes, and each row in exactly one place. Exit code 1 where anything differs.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from deploy.loadtest.ad_vocabulary import INTENTS, TOPICS
from deploy.ray.bulk_score import score_on_cluster
from service.bulk.score_file import FileJob, score_file
from service.bulk.table import PartSize
from service.cpu import usable_cores
from service.scoring.bundle import open_bundle
from service.settings import Settings

BROKEN_EVERY = 1000  # one row in so many is no pair
LOOK_EVERY_S = 0.05
STORE_BYTES = 100_000_000


def main() -> int:
    """Run, compare, print.

    Returns:
        Exit code: 1 where the outputs differ or a row is missing.
    """
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return _judge(options, Path(folder))


def _judge(options: argparse.Namespace, folder: Path) -> int:
    size = PartSize(rows=options.rows_per_part)
    path, out = folder / "pairs.jsonl", folder / "cluster"
    _write_pairs(path, options.rows)
    with _two_nodes() as node:
        half = options.rows / size.rows / 2
        killer = threading.Thread(target=_kill_when, args=(out, half, node), daemon=True)
        killer.start()
        started_s = time.monotonic()
        record = score_on_cluster(path, out, "jsonl", options.bundle.resolve(), size=size)
        cluster_s = time.monotonic() - started_s
        killer.join()
    limit_bytes = Settings.model_fields["max_body_bytes"].default
    job = FileJob(path, folder / "a.jsonl", folder / "r.jsonl", False, limit_bytes, PartSize())
    started_s = time.monotonic()
    score_file(job, open_bundle(options.bundle), usable_cores(), sys.stderr)
    alone_s = time.monotonic() - started_s
    scores, rejects = sorted(out.glob("part-*")), sorted(out.glob("_run/rejects-*"))
    facts = {
        "rows": record.rows,
        "scored": record.scored,
        "rejected": record.rejected,
        "rows_in_exactly_one_place": _each_row_once(scores, rejects, options.rows),
        "scores_equal_score_file": _digest(scores) == _digest([job.out]),
        "rejects_equal_score_file": _digest(rejects) == _digest([job.rejects]),
        "cluster_s": round(cluster_s, 1),
        "score_file_s": round(alone_s, 1),
    }
    print(json.dumps(facts, indent=2))
    return 0 if all(facts[name] for name in facts if name.endswith(("place", "score_file"))) else 1


def _write_pairs(path: Path, n_rows: int) -> None:
    rng = random.Random(1)  # noqa: S311  # the same rows in every run
    products = [product for topic in TOPICS for product in topic.products]
    with path.open("w", encoding="utf-8") as file:
        for number in range(n_rows):
            words = rng.choices(products, k=rng.randint(1, 6))
            row: dict[str, Any] = {"id": number, "query": f"{rng.choice(INTENTS)} {words[0]}"}
            if number % BROKEN_EVERY:
                row["title"] = f"{' '.join(words)} {rng.randint(1, 999)}"
            file.write(f"{json.dumps(row)}\n")


@contextlib.contextmanager
def _two_nodes() -> Iterator[Any]:
    """A cluster of two nodes of one core, to which this process is connected; gives the second."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # keeps to the loopback
    import ray  # noqa: PLC0415  # it reads them when it is imported
    from ray.cluster_utils import Cluster  # noqa: PLC0415

    head = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": STORE_BYTES}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        ray.init(address=cluster.address, log_to_driver=False)
        yield cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
    finally:
        ray.shutdown()
        cluster.shutdown()


def _kill_when(out: Path, n_parts: float, node: Any) -> None:  # noqa: ANN401  # Ray's
    while len(list(out.glob("_run/done-*"))) < n_parts:
        time.sleep(LOOK_EVERY_S)
    for raylet in node.all_processes["raylet"]:
        os.kill(raylet.process.pid, signal.SIGKILL)
    print(f"\nkilled one of two nodes after {n_parts:.0f} parts", file=sys.stderr)


def _each_row_once(scores: Iterable[Path], rejects: Iterable[Path], n_rows: int) -> bool:
    found = [int(json.loads(line)["id"]) for path in scores for line in path.open("rb")]
    found += [int(json.loads(line)["row"]) - 1 for path in rejects for line in path.open("rb")]
    return sorted(found) == list(range(n_rows))


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bundle", type=Path, default=Path("bundles/default"))
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rows-per-part", type=int, default=PartSize().rows)
    return parser


if __name__ == "__main__":
    sys.exit(main())
