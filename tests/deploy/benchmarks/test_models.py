from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from deploy.benchmarks import bench_models
from tests.tiny_models import WORDS


def test_bundles_are_judged_measured_and_drawn(
    tiny_bundle_fp32: Path,
    tiny_bundle_int8: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [
        {"query": "red shoe", "title": f"{word} {other}", "label": int(word < other)}
        for word in WORDS[:6]
        for other in WORDS[:6]
    ]
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for file in files:
        file.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    out = tmp_path / "out"
    command = ["bench_models", "--rounds", "2", "--seconds", "0.05", "--out", str(out)]
    for bundle in (tiny_bundle_int8, tiny_bundle_fp32):
        command += ["--bundle", str(bundle)]
    for file in files:
        command += ["--pairs", str(file)]
    monkeypatch.setattr(sys, "argv", command)
    bench_models.main()
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("| model | a: AUC, NDCG@10, ECE | b: AUC")
    stored = json.loads((out / "models.json").read_text(encoding="utf-8"))
    assert [row["precision"] for row in stored["rows"]] == ["int8", "fp32"]
    first, second = stored["rows"]
    assert first["to_first"] == {"median": 1.0, "lowest": 1.0, "highest": 1.0}
    assert second["to_first"]["lowest"] <= second["to_first"]["median"]
    assert first["quality"]["a"] == first["quality"]["b"]
    assert f"{first['quality']['a']['auc']:.3f}" in shown[2]
    assert len(stored["pairs_per_s_by_round"]) == 2
    assert (out / "models.png").stat().st_size > 1000
