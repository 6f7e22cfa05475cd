from __future__ import annotations

import io
import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from service.bulk.errors import CannotResume, OutputExists
from service.bulk.part_store import PartStore
from service.bulk.score_file import FileJob, score_file
from service.bulk.table import PartSize
from service.scoring.bundle import open_bundle
from service.settings import Settings
from tests.waiting import until

N_ROWS = 6_000
SIZE = PartSize(rows=125)


def written(folder: Path) -> Path:
    words = "red blue green shoe bag cheap run fast long lamp chair".split()  # noqa: SIM905  # reads better
    path = folder / "pairs.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(N_ROWS):
            title = " ".join(words[(number * step) % 11] for step in range(1, 4 + number % 9))
            row = {"id": number, "query": f"{words[number % 11]} {number % 101}", "title": title}
            if number % 997 == 0:
                row["title"] = ""
            file.write(f"{json.dumps(row)}\n")
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="module")
def expected(
    path: Path, tiny_bundle_int8: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[bytes, bytes]:
    """What one process makes of the file."""
    folder = tmp_path_factory.mktemp("alone")
    limit_bytes = Settings.model_fields["max_body_bytes"].default
    job = FileJob(path, folder / "a.jsonl", folder / "r.jsonl", False, limit_bytes, PartSize())
    score_file(job, open_bundle(tiny_bundle_int8), 2, io.StringIO())
    return job.out.read_bytes(), job.rejects.read_bytes()


def joined(folder: Path, pattern: str) -> bytes:
    return b"".join(part.read_bytes() for part in sorted(folder.glob(pattern)))


def kill_once_it_works(node: Any, out: Path) -> None:  # noqa: ANN401  # Ray's
    """Kill a node's raylet, and so all of the node, between two parts of the run."""
    until(lambda: len(list(out.glob("_run/done-*"))) >= 4)
    [raylet] = node.all_processes["raylet"]
    os.kill(raylet.process.pid, signal.SIGKILL)


def test_a_node_that_dies_costs_only_what_it_was_doing(
    cluster: Any,  # noqa: ANN401  # Ray's
    path: Path,
    expected: tuple[bytes, bytes],
    tiny_bundle_int8: Path,
    tmp_path: Path,
) -> None:
    from deploy.ray.bulk_score import score_on_cluster

    second = cluster.add_node(num_cpus=1, object_store_memory=10**8)
    out = tmp_path / "scores"
    killer = threading.Thread(target=kill_once_it_works, args=(second, out))
    killer.start()
    record = score_on_cluster(path, out, "jsonl", tiny_bundle_int8, size=SIZE)
    killer.join()
    cluster.remove_node(second, allow_graceful=False)
    manifest = json.loads((out / "_manifest.json").read_bytes())
    assert (record.rows, record.rejected) == (N_ROWS, 7)
    assert manifest["rows"] == manifest["scored"] + manifest["rejected"] == N_ROWS
    assert len(list(out.glob("part-*"))) == manifest["parts"] == N_ROWS // SIZE.rows
    assert (joined(out, "part-*"), joined(out, "_run/rejects-*")) == expected


@pytest.mark.usefixtures("cluster")
def test_a_run_goes_on_with_the_parts_that_are_there(
    path: Path, expected: tuple[bytes, bytes], tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    from deploy.ray.bulk_score import score_on_cluster

    out, size = tmp_path / "scores", PartSize(rows=500)
    score_on_cluster(path, out, "jsonl", tiny_bundle_int8, size=size)
    for number in (3, 7):
        (out / "_run" / f"done-{number:06}.json").unlink()
        (out / f"part-{number:06}.jsonl").write_bytes(b"half a l")
    before = (out / "part-000000.jsonl").stat().st_mtime_ns
    with pytest.raises(OutputExists, match="--resume"):
        score_on_cluster(path, out, "jsonl", tiny_bundle_int8, size=size)
    with pytest.raises(CannotResume, match="another form"):
        score_on_cluster(path, out, "jsonl", tiny_bundle_int8, resume=True, size=SIZE)
    record = score_on_cluster(path, out, "jsonl", tiny_bundle_int8, resume=True, size=size)
    assert record.rows == N_ROWS
    assert joined(out, "part-*") == expected[0]
    assert (out / "part-000000.jsonl").stat().st_mtime_ns == before


@pytest.mark.usefixtures("cluster")
def test_a_part_that_cannot_be_done_ends_the_run_with_its_reason(
    tiny_bundle_int8: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deploy.ray import bulk_score

    path = tmp_path / "pairs.jsonl"
    path.write_text('{"query": "red", "text": "shoe"}\n', encoding="utf-8")
    original = PartStore.hold

    def hold(*arguments: Any, **options: Any) -> None:  # noqa: ANN401
        original(*arguments, **options)
        path.write_text('{"query": "blue", "text": "shoe"}\n', encoding="utf-8")

    monkeypatch.setattr(PartStore, "hold", hold)
    with pytest.raises(bulk_score.ClusterFailed, match=r"pairs\.jsonl was changed"):
        bulk_score.score_on_cluster(path, tmp_path / "out", "jsonl", tiny_bundle_int8)
